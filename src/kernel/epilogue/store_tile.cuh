// From the accumulators of one warpgroup to D.
//
// The warpgroup hands out its tile in chunks: 64 rows of P by chunk_q columns of Q, one staging buffer each, a ring of them. In a buffer a
// chunk lies as a box of D: rows of at most 128 bytes, swizzled, so that neither the writing threads nor the readers meet bank conflicts.
// With OperandOrder::columns_of_b the fragments hold D transposed, and are turned on their way into the buffer.
#pragma once

#include "kernel/epilogue/elements.cuh"
#include "kernel/mainloop/wgmma_consumer.cuh"

namespace sluice {

template <KernelConfig config>
class TileStore {
 public:
  // warpgroup: of the consumers. first_block: which 64 rows of P it begins with inside the tile. `buffers` are its own.
  SLUICE_DEVICE TileStore(const EpilogueParams& params, std::byte* buffers, int warpgroup, int first_block)
      : params_(params), buffers_(buffers), barrier_id_(kFirstBarrier + warpgroup), first_block_(first_block) {}

  static SLUICE_DEVICE void prefetch(const EpilogueParams& params) {
    if (params.path == StorePath::copy_engine) arch::prefetch_tensor_map(params.map_d);
  }

  SLUICE_DEVICE void store(const Accumulators<config>& sums, const WorkTile& tile) {
    if (params_.path == StorePath::elementwise || params_.type_d == DataType::fp32)
      store_chunks<DataType::fp32>(sums, tile);
    else if (params_.type_d == DataType::bf16)
      store_chunks<DataType::bf16>(sums, tile);
    else
      store_chunks<DataType::fp16>(sums, tile);
  }

  // Before the CTA ends: the copy engine must have read the buffers.
  SLUICE_DEVICE void finish() const {
    if (is_storing_thread()) arch::bulk_wait_read<0>();
  }

  static constexpr int kFirstBarrier = 1;  // named barriers kFirstBarrier and kFirstBarrier + 1

 private:
  static constexpr bool kTransposed = swapped(config);
  static constexpr int kBuffers = shared_memory_layout(config).staging_buffers;
  static constexpr int kBlocks = Accumulators<config>::kBlocks;

  // Where a box of D begins.
  struct Corner {
    int m;
    int n;
    int batch;
  };
  SLUICE_DEVICE Corner corner(const WorkTile& tile, int block, int first_q) const {
    const int p = (first_block_ + block) * kWgmmaRows;
    return {tile.tile_m * config.tile_m + (kTransposed ? first_q : p), tile.tile_n * config.tile_n + (kTransposed ? p : first_q), tile.group};
  }

  SLUICE_DEVICE bool is_storing_thread() const { return arch::thread_in_warpgroup() == 0; }
  SLUICE_DEVICE void sync_warpgroup() const { arch::named_barrier_sync(barrier_id_, kWarpgroupThreads); }

  // `staged` is the type in the staging buffers: D's, or fp32 when single elements remain to be finished.
  template <DataType staged>
  SLUICE_DEVICE void store_chunks(const Accumulators<config>& sums, const WorkTile& tile) {
    constexpr int kWidth = chunk_q(config, size_bytes(staged));
    constexpr int kChunksPerBlock = tile_q(config) / kWidth;
    // A loop that stays a loop, so that what follows the fragments' code exists once. Registers need indices known to the compiler: inside,
    // the chunk is found by comparison.
    SLUICE_NO_UNROLL
    for (int chunk = 0; chunk < kBlocks * kChunksPerBlock; ++chunk) {
      std::byte* buffer = next_buffer();
      if (is_storing_thread()) arch::bulk_wait_read<kBuffers - 1>();  // the buffer's last box has left
      sync_warpgroup();
      SLUICE_UNROLL
      for (int i = 0; i < kBlocks * kChunksPerBlock; ++i)
        if (i == chunk) write_chunk<staged, kWidth>(sums.values[i / kChunksPerBlock], i % kChunksPerBlock * kWidth, buffer);
      arch::fence_shared_for_async();
      sync_warpgroup();
      const Corner at = corner(tile, chunk / kChunksPerBlock, chunk % kChunksPerBlock * kWidth);
      bool done = false;
      if constexpr (staged == DataType::fp32) {
        done = params_.path == StorePath::elementwise;
        if (done) finish_elements<kWidth>(at, buffer);
      }
      if (!done && is_storing_thread()) {
        store_box<staged, kWidth>(at, buffer);
        arch::bulk_commit();
      }
    }
  }

  // Swapped fp32: 64 columns of D are two boxes of 128-byte rows.
  template <DataType type, int width>
  SLUICE_DEVICE void store_box(Corner at, const std::byte* buffer) const {
    arch::tma_store(params_.map_d, {at.n, at.m, at.batch}, buffer);
    if constexpr (kTransposed && type == DataType::fp32)
      arch::tma_store(params_.map_d, {at.n + kWgmmaRows / 2, at.m, at.batch}, buffer + width * kSwizzleBytes);
  }

  SLUICE_DEVICE std::byte* next_buffer() {
    std::byte* buffer = buffers_ + next_ * staging_buffer_bytes(config);
    next_ = next_ + 1 == kBuffers ? 0 : next_ + 1;
    return buffer;
  }

  // Byte offset of a 16-byte packet in a box whose rows are `row_bytes` long, swizzled as a tensor map of that inner extent swizzles:
  // the 128-byte line's number, taken modulo the packets of a row, turns the packet's.
  template <int row_bytes>
  static SLUICE_DEVICE int packet_offset(int row, int packet) {
    constexpr int kRowsPerLine = kSwizzleBytes / row_bytes;
    constexpr int kPackets = row_bytes / 16;
    return row * row_bytes + ((packet ^ (row / kRowsPerLine % kPackets)) * 16);
  }

  // Columns [first_q, first_q + width) of one block's fragments into a buffer. In a fragment, warp w holds rows 16 w to 16 w + 15 of P;
  // values 4 j to 4 j + 3 of a lane are columns 8 j + 2 (lane % 4) + {0, 1} of rows lane / 4 and lane / 4 + 8.
  template <DataType type, int width>
  SLUICE_DEVICE void write_chunk(const float (&values)[Accumulators<config>::kPerBlock], int first_q, std::byte* buffer) const {
    const int warp = arch::thread_in_warpgroup() / 32, lane = arch::lane();
    // Without this the compiler computes the results of all chunks before the first is written, and runs out of registers.
    const float alpha = arch::opaque(params_.alpha);
    if constexpr (type == DataType::fp32) {
      SLUICE_UNROLL
      for (int j = 0; j < width / 8; ++j) {
        SLUICE_UNROLL
        for (int half = 0; half < 2; ++half) {
          const int p = warp * 16 + half * 8 + lane / 4, q = j * 8 + lane % 4 * 2;
          const float low = alpha * values[first_q / 2 + 4 * j + 2 * half];
          const float high = alpha * values[first_q / 2 + 4 * j + 2 * half + 1];
          if constexpr (kTransposed) {
            *fp32_in_box<width>(buffer, q, p) = low;
            *fp32_in_box<width>(buffer, q + 1, p) = high;
          } else {
            float2* both = reinterpret_cast<float2*>(buffer + packet_offset<width * 4>(p, q / 4) + q % 4 * 4);
            *both = make_float2(low, high);
          }
        }
      }
    } else {
      // Lane 8 i + r gives the address of row r of matrix i: matrices 0 and 1 are 8 columns of Q by 16 rows of P, 2 and 3 the next 8 columns.
      const int p_matrix = 2 * warp + lane / 8 % 2, q_matrix = lane / 16, row = lane % 8;
      std::byte* const start = buffer + (kTransposed ? packet_offset<kSwizzleBytes>(q_matrix * 8 + row, p_matrix)
                                                     : packet_offset<width * 2>(p_matrix * 8 + row, q_matrix));
      SLUICE_UNROLL
      for (int j = 0; j < width / 8; j += 2) {
        std::uint32_t matrices[4];
        SLUICE_UNROLL
        for (int i = 0; i < 4; ++i) {
          const float* pair = &values[first_q / 2 + 4 * j + 2 * i];
          matrices[i] = Element<type>::pack(alpha * pair[0], alpha * pair[1]);
        }
        if constexpr (kTransposed)
          arch::store_matrices_transposed(start + j * 8 * kSwizzleBytes, matrices[0], matrices[1], matrices[2], matrices[3]);
        else  // the swizzle is an exclusive or of address bits, and so is a step of an even number of packets
          arch::store_matrices(xor_address(start, j * 16), matrices[0], matrices[1], matrices[2], matrices[3]);
      }
    }
  }

  static SLUICE_DEVICE std::byte* xor_address(std::byte* address, int bits) {
    return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(address) ^ static_cast<std::uintptr_t>(bits));
  }

  // Swapped fp32 chunks: row m of the box, column n of 64, in two halves of 32 columns.
  template <int width>
  static SLUICE_DEVICE float* fp32_in_box(std::byte* buffer, int m, int n) {
    return reinterpret_cast<float*>(buffer + n / 32 * (width * kSwizzleBytes) + packet_offset<kSwizzleBytes>(m, n % 32 / 4) + n % 4 * 4);
  }

  // Four neighbouring elements of a row of D at a time: alpha is applied already.
  template <int width>
  SLUICE_DEVICE void finish_elements(Corner at, std::byte* buffer) const {
    constexpr int kRows = kTransposed ? width : kWgmmaRows;
    constexpr int kQuadsPerRow = (kTransposed ? kWgmmaRows : width) / 4;
    SLUICE_NO_UNROLL
    for (int i = arch::thread_in_warpgroup(); i < kRows * kQuadsPerRow; i += kWarpgroupThreads) {
      const int row = i / kQuadsPerRow, column = i % kQuadsPerRow * 4;
      const int m = at.m + row, n = at.n + column;
      if (m >= params_.m || n >= params_.n) continue;
      float4 sum;
      if constexpr (kTransposed)
        sum = *reinterpret_cast<const float4*>(fp32_in_box<width>(buffer, row, column));
      else
        sum = *reinterpret_cast<const float4*>(buffer + packet_offset<width * 4>(row, column / 4));
      finish_four(params_, m, n, at.batch, sum);
    }
  }

  const EpilogueParams& params_;
  std::byte* buffers_;
  int barrier_id_;
  int first_block_;
  int next_ = 0;  // staging buffer
};

}  // namespace sluice
