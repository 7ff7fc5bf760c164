// From the accumulators of one warpgroup to D.
//
// The warpgroup hands out its tile in chunks (StoreChunks), one staging buffer each, a ring of them. In a buffer a
// chunk lies as a box of D: rows of at most 128 bytes, swizzled, so that neither the writing threads nor the readers meet bank conflicts.
// With OperandOrder::columns_of_b the fragments hold D transposed, and are turned on their way into the buffer.
#pragma once

#include "core/tile_parts.hpp"
#include "kernel/epilogue/clip_rows.cuh"
#include "kernel/epilogue/elements.cuh"
#include "kernel/epilogue/finish_elements.cuh"
#include "kernel/mainloop/wgmma_consumer.cuh"

namespace sluice {

template <KernelConfig config>
class TileStore {
 public:
  // warpgroup: of the consumers. first_block: which 64 rows of P it begins with inside the tile. `buffers` are its own.
  SLUICE_DEVICE TileStore(const EpilogueParams& params, std::byte* buffers, int warpgroup, int first_block)
      : params_(params), buffers_(arch::shared_address(buffers)), barrier_id_(kFirstBarrier + warpgroup), first_block_(first_block) {}

  static SLUICE_DEVICE void prefetch(const EpilogueParams& params) {
    if (params.path == StorePath::copy_engine) arch::prefetch_tensor_map(params.map_d);
  }

  SLUICE_DEVICE void store(const Accumulators<config>& sums, const WorkTile& tile, const TilePart& part) {
    const DataType staged = params_.path == StorePath::elementwise ? DataType::fp32 : params_.type_d;
    with_data_type(staged, [&]<DataType type>() { store_chunks_of<type>(sums, tile, part); });
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
    int row_end;  // of its group
  };
  SLUICE_DEVICE Corner corner(const WorkTile& tile, int block, int first_q) const {
    const int p = (first_block_ + block) * kWgmmaRows;
    return {tile.first_row + (kTransposed ? first_q : p), tile.tile_n * config.tile_n + (kTransposed ? p : first_q), tile.group,
            tile.row_end};
  }

  SLUICE_DEVICE bool is_storing_thread() const { return arch::thread_in_warpgroup() == 0; }
  SLUICE_DEVICE void sync_warpgroup() const { arch::named_barrier_sync(barrier_id_, kWarpgroupThreads); }

  // `staged` is the type in the staging buffers: D's, or fp32 when single elements remain to be finished.
  template <DataType staged>
  SLUICE_DEVICE void store_chunks_of(const Accumulators<config>& sums, const WorkTile& tile, const TilePart& part) {
    constexpr StoreChunks kChunks = store_chunks(config, size_bytes(staged));
    constexpr int kPerBlock = kChunks.count + (kChunks.rest > 0 ? 1 : 0);
    // A loop that stays a loop, so that what follows the fragments' code exists once. Registers need indices known to the compiler: inside,
    // the chunk is found by comparison.
    SLUICE_NO_UNROLL
    for (int chunk = 0; chunk < kBlocks * kPerBlock; ++chunk) {
      // The columns of Q in this chunk that belong to the part.
      const int first_packet = chunk / kPerBlock * (tile_q(config) / 8) + chunk % kPerBlock * (kChunks.width / 8);
      const int begin = (part.begin - first_packet) * 8, end = (part.end - first_packet) * 8;
      if (end <= 0 || begin >= (chunk % kPerBlock < kChunks.count ? kChunks.width : kChunks.rest)) continue;
      const arch::SharedAddress buffer = next_buffer();
      if (is_storing_thread()) arch::bulk_wait_read<kBuffers - 1>();  // the buffer's last box has left
      sync_warpgroup();
      SLUICE_UNROLL
      for (int i = 0; i < kBlocks * kPerBlock; ++i) {
        if (i != chunk) continue;
        if (i % kPerBlock < kChunks.count)
          write_boxes<staged, kChunks.width, 1>(sums.values[i / kPerBlock], i % kPerBlock * kChunks.width, buffer);
        else if constexpr (kChunks.rest > 0)
          write_boxes<staged, kChunks.rest_box, kChunks.rest / kChunks.rest_box>(sums.values[i / kPerBlock], kChunks.count * kChunks.width,
                                                                                 buffer);
      }
      arch::fence_shared_for_async();
      sync_warpgroup();
      const Corner at = corner(tile, chunk / kPerBlock, chunk % kPerBlock * kChunks.width);
      if (chunk % kPerBlock < kChunks.count)
        send_boxes<staged, kChunks.width, 1>(params_.map_d, at, buffer, begin, end);
      else if constexpr (kChunks.rest > 0)
        send_boxes<staged, kChunks.rest_box, kChunks.rest / kChunks.rest_box>(params_.map_d_rest, at, buffer, begin, end);
    }
  }

  template <DataType staged, int width>
  static constexpr int kBoxBytes = kWgmmaRows* width* size_bytes(staged);

  template <DataType staged, int width, int boxes>
  SLUICE_DEVICE void write_boxes(const float (&values)[Accumulators<config>::kPerBlock], int first_q, arch::SharedAddress buffer) const {
    SLUICE_UNROLL
    for (int box = 0; box < boxes; ++box) write_box<staged, width>(values, first_q + box * width, buffer + box * kBoxBytes<staged, width>);
  }

  template <DataType staged, int width, int boxes>
  SLUICE_DEVICE void send_boxes(const arch::TensorMap& map, Corner at, arch::SharedAddress buffer, int begin, int end) const {
    static_assert(boxes == 1 || !kTransposed, "boxes lie side by side along the columns of D");
    if constexpr (staged == DataType::fp32) {
      if (params_.path == StorePath::elementwise) {
        for (int box = 0; box < boxes; ++box)
          finish_box<width>({at.m, at.n + box * width, at.batch, at.row_end}, buffer + box * kBoxBytes<staged, width>, begin - box * width,
                            end - box * width);
        return;
      }
    }
    if (!is_storing_thread()) return;
    for (int box = 0; box < boxes; ++box)
      store_box<staged, width>(map, {at.m, at.n + box * width, at.batch, at.row_end}, buffer + box * kBoxBytes<staged, width>);
    arch::bulk_commit();
  }

  // Swapped fp32: 64 columns of D are two boxes of 128-byte rows.
  template <DataType type, int width>
  SLUICE_DEVICE void store_box(const arch::TensorMap& map, Corner at, arch::SharedAddress buffer) const {
    if (params_.clips_rows && !clip_rows(params_, at.row_end, store_box_rows(config, width), at.m, at.batch)) return;
    arch::tma_store(map, {at.n, at.m, at.batch}, buffer);
    if constexpr (kTransposed && type == DataType::fp32)
      arch::tma_store(map, {at.n + kWgmmaRows / 2, at.m, at.batch}, buffer + width * kSwizzleBytes);
  }

  SLUICE_DEVICE arch::SharedAddress next_buffer() {
    const arch::SharedAddress buffer = buffers_ + next_ * staging_buffer_bytes(config);
    next_ = next_ + 1 == kBuffers ? 0 : next_ + 1;
    return buffer;
  }

  // Byte offset of a 16-byte packet in a box whose rows are `row_bytes` long, swizzled as a tensor map of that inner extent swizzles:
  // the 128-byte line's number, taken modulo the packets of a row, turns the packet's. (Rows of one packet lie as they are.)
  template <int row_bytes>
  static SLUICE_DEVICE std::uint32_t packet_offset(int row, int packet) {
    constexpr int kRowsPerLine = kSwizzleBytes / row_bytes;
    constexpr int kPackets = row_bytes / 16;
    return static_cast<std::uint32_t>(row * row_bytes + (packet ^ (row / kRowsPerLine % kPackets)) * 16);
  }

  // Columns [first_q, first_q + width) of one block's fragments into a box. In a fragment, warp w holds rows 16 w to 16 w + 15 of P;
  // values 4 j to 4 j + 3 of a lane are columns 8 j + 2 (lane % 4) + {0, 1} of rows lane / 4 and lane / 4 + 8.
  template <DataType type, int width>
  SLUICE_DEVICE void write_box(const float (&values)[Accumulators<config>::kPerBlock], int first_q, arch::SharedAddress buffer) const {
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
            arch::store_shared(fp32_in_box<width>(buffer, q, p), low);
            arch::store_shared(fp32_in_box<width>(buffer, q + 1, p), high);
          } else {
            arch::store_shared(fp32_in_box<width>(buffer, p, q), low, high);
          }
        }
      }
    } else {
      // Lane 8 i + r gives the address of row r of matrix i: matrices 0 and 1 are 8 columns of Q by 16 rows of P, 2 and 3 the next 8
      // columns.
      constexpr int kMatrices = width == 8 ? 2 : 4;
      const int p_matrix = 2 * warp + lane / 8 % 2, q_matrix = lane / 16 % (kMatrices / 2), row = lane % 8;
      const arch::SharedAddress start = buffer + (kTransposed ? packet_offset<kSwizzleBytes>(q_matrix * 8 + row, p_matrix)
                                                              : packet_offset<width * 2>(p_matrix * 8 + row, q_matrix));
      SLUICE_UNROLL
      for (int j = 0; j < width / 8; j += kMatrices / 2) {
        std::uint32_t matrices[kMatrices];
        SLUICE_UNROLL
        for (int i = 0; i < kMatrices; ++i) {
          const float* pair = &values[first_q / 2 + 4 * j + 2 * i];
          matrices[i] = Element<type>::pack(alpha * pair[0], alpha * pair[1]);
        }
        // Transposed, 8 columns of Q are 8 whole rows. Otherwise a step of an even number of packets, like the swizzle, is an exclusive or.
        arch::store_matrices<kTransposed>(kTransposed ? start + j * 8 * kSwizzleBytes : start ^ (j * 16), matrices);
      }
    }
  }

  // Where an fp32 box holds element (row, column) of its part of D. Swapped boxes have 64 columns, in two halves of 32.
  template <int width>
  static SLUICE_DEVICE arch::SharedAddress fp32_in_box(arch::SharedAddress buffer, int row, int column) {
    if constexpr (kTransposed)
      return buffer + column / 32 * (width * kSwizzleBytes) + packet_offset<kSwizzleBytes>(row, column % 32 / 4) + column % 4 * 4;
    else
      return buffer + packet_offset<width * 4>(row, column / 4) + column % 4 * 4;
  }
  // A few neighbouring elements of a row of D at a time: alpha is applied already. Four, unless the accumulators leave too few registers.
  // Of the box's columns of Q, [begin, end).
  template <int width>
  SLUICE_DEVICE void finish_box(Corner at, arch::SharedAddress buffer, int begin, int end) const {
    constexpr int kGroup = accumulators_per_thread(config) > 176 ? 2 : 4;
    constexpr int kRows = kTransposed ? width : kWgmmaRows;
    constexpr int kGroupsPerRow = (kTransposed ? kWgmmaRows : width) / kGroup;
    SLUICE_NO_UNROLL
    for (int i = arch::thread_in_warpgroup(); i < kRows * kGroupsPerRow; i += kWarpgroupThreads) {
      const int row = i / kGroupsPerRow, column = i % kGroupsPerRow * kGroup;
      if (at.m + row >= at.row_end || at.n + column >= params_.n) continue;
      if ((kTransposed ? row : column) < begin || (kTransposed ? row : column) >= end) continue;
      float sums[kGroup];
      arch::load_shared(fp32_in_box<width>(buffer, row, column), sums);
      finish_elements(params_, at.m + row, at.n + column, at.batch, sums);
    }
  }

  const EpilogueParams& params_;
  arch::SharedAddress buffers_;
  int barrier_id_;
  int first_block_;
  int next_ = 0;  // staging buffer
};

}  // namespace sluice
