// From the accumulators of one warpgroup to D.
//
// The warpgroup hands out its tile in chunks (StoreChunks), one staging buffer each, a ring of them. In a buffer a
// chunk lies as a box of D: rows of at most 128 bytes, swizzled, so that neither the writing threads nor the readers meet bank conflicts.
// With OperandOrder::columns_of_b the fragments hold D transposed, and are turned on their way into the buffer.
#pragma once

#include "core/tile_parts.hpp"
#include "kernel/epilogue/clip_rows.cuh"
#include "kernel/epilogue/elements.cuh"
#include "kernel/epilogue/fp32_boxes.cuh"
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
    constexpr DataType kPlain = is_fp8(config.type_a) ? DataType::bf16 : config.type_a;
    const DataType staged = is_short(config) ? kPlain : params_.path == StorePath::elementwise ? DataType::fp32 : params_.type_d;
    with_data_type(staged, [&]<DataType type>() { store_chunks_of<type>(sums, tile, part); });
  }

  // Before the CTA ends: the copy engine must have read the buffers.
  static SLUICE_DEVICE void finish() { may_store() ? arch::bulk_wait_read<0>() : void(); }

  // Handing over a box takes a warp some 150 cycles: each warp hands over another one.
  static SLUICE_DEVICE bool may_store() { return arch::lane() == 0; }

  static constexpr int kFirstBarrier = 1;  // named barriers kFirstBarrier and kFirstBarrier + 1

 private:
  static constexpr bool kTransposed = swapped(config);
  static constexpr int kBuffers = shared_memory_layout(config).staging_buffers;
  static constexpr int kBlocks = Accumulators<config>::kBlocks;

  SLUICE_DEVICE BoxCorner corner(const WorkTile& tile, int block, int first_q) const {
    const int p = (first_block_ + block) * kWgmmaRows;
    return {tile.first_row + (kTransposed ? first_q : p), tile.tile_n * config.tile_n + (kTransposed ? p : first_q), tile.group,
            tile.row_end};
  }

  static SLUICE_DEVICE bool stores(int box) { return may_store() && arch::thread_in_warpgroup() / 32 == box % kWarpsPerWarpgroup; }
  SLUICE_DEVICE void sync_warpgroup() const { arch::named_barrier_sync(barrier_id_, kWarpgroupThreads); }

  // `staged` is the type in the staging buffers: D's, or fp32 when single elements remain to be finished.
  template <DataType staged>
  SLUICE_DEVICE void store_chunks_of(const Accumulators<config>& sums, const WorkTile& tile, const TilePart& part) {
    constexpr StoreChunks kChunks = store_chunks(config, size_bytes(staged));
    constexpr int kPerBlock = kChunks.all(), kAll = kBlocks * kPerBlock;
    // All at once where each has a buffer, so that the warpgroup waits for itself once; else one after the other.
    constexpr int kAtOnce = kAll <= kBuffers ? kAll : 1;
    const auto first_packet = [&](int chunk) { return chunk / kPerBlock * (tile_q(config) / 8) + chunk % kPerBlock * (kChunks.width / 8); };
    const auto in_part = [&](int chunk) {
      const int width = chunk % kPerBlock < kChunks.count ? kChunks.width : kChunks.rest;
      return is_short(config) || (part.end > first_packet(chunk) && (part.begin - first_packet(chunk)) * 8 < width);
    };
    // Loops that stay loops: code exists once. Registers need indices known to the compiler, so chunks are found by comparison.
    SLUICE_NO_UNROLL
    for (int first = 0, taken = 0; first < kAll; first += kAtOnce) {
      if (kAtOnce == 1 && !in_part(first)) continue;
      const arch::SharedAddress buffers = buffers_ + taken % kBuffers * staging_buffer_bytes(config);
      // What the buffers held has left: boxes of the tile before, or that of the chunk `kBuffers` before.
      if (may_store()) taken == 0 ? arch::bulk_wait_read<0>() : arch::bulk_wait_read<kBuffers - 1>();
      sync_warpgroup();
      SLUICE_UNROLL
      for (int i = 0; i < kAll; ++i) {
        if (i < first || i >= first + kAtOnce || !in_part(i)) continue;
        const arch::SharedAddress buffer = buffers + i % kAtOnce * staging_buffer_bytes(config);
        if (i % kPerBlock < kChunks.count)
          write_boxes<staged, kChunks.width, 1>(sums.values[i / kPerBlock], i % kPerBlock * kChunks.width, buffer);
        else if constexpr (kChunks.rest > 0)
          write_boxes<staged, kChunks.rest_box, kChunks.rest / kChunks.rest_box>(sums.values[i / kPerBlock], kChunks.count * kChunks.width,
                                                                                 buffer);
      }
      arch::fence_shared_for_async();
      sync_warpgroup();
      ++taken;
      SLUICE_NO_UNROLL
      for (int chunk = first; chunk < first + kAtOnce; ++chunk) {
        if (!in_part(chunk) || (params_.path == StorePath::copy_engine && !stores(chunk % kAtOnce))) continue;
        const BoxCorner at = corner(tile, chunk / kPerBlock, chunk % kPerBlock * kChunks.width);
        const arch::SharedAddress buffer = buffers + chunk % kAtOnce * staging_buffer_bytes(config);
        const int begin = (part.begin - first_packet(chunk)) * 8, end = (part.end - first_packet(chunk)) * 8;
        if (chunk % kPerBlock < kChunks.count)
          send_boxes<staged, kChunks.width, 1>(params_.map_d, at, buffer, begin, end);
        else if constexpr (kChunks.rest > 0)
          send_boxes<staged, kChunks.rest_box, kChunks.rest / kChunks.rest_box>(params_.map_d_rest, at, buffer, begin, end);
      }
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
  SLUICE_DEVICE void send_boxes(const arch::TensorMap& map, BoxCorner at, arch::SharedAddress buffer, int begin, int end) const {
    static_assert(boxes == 1 || !kTransposed, "boxes lie side by side along the columns of D");
    if constexpr (staged == DataType::fp32) {
      if (params_.path == StorePath::elementwise) {
        for (int box = 0; box < boxes; ++box)
          Fp32Boxes<config>::template finish<width>(params_, {at.m, at.n + box * width, at.batch, at.row_end},
                                                    buffer + box * kBoxBytes<staged, width>, begin - box * width, end - box * width);
        return;
      }
    }
    for (int box = 0; box < boxes; ++box)
      store_box<staged, width>(map, {at.m, at.n + box * width, at.batch, at.row_end}, buffer + box * kBoxBytes<staged, width>);
    arch::bulk_commit();
  }

  // Swapped fp32: 64 columns of D are two boxes of 128-byte rows.
  template <DataType type, int width>
  SLUICE_DEVICE void store_box(const arch::TensorMap& map, BoxCorner at, arch::SharedAddress buffer) const {
    if (config.scope != KernelScope::plain && params_.clips_rows &&
        !clip_rows(params_, at.row_end, store_box_rows(config, width), at.m, at.batch))
      return;
    arch::tma_store(map, {at.n, at.m, at.batch}, buffer);
    if constexpr (kTransposed && type == DataType::fp32)
      arch::tma_store(map, {at.n + kWgmmaRows / 2, at.m, at.batch}, buffer + width * kSwizzleBytes);
  }

  // Columns [first_q, first_q + width) of one block's fragments into a box. In a fragment, warp w holds rows 16 w to 16 w + 15 of P;
  // values 4 j to 4 j + 3 of a lane are columns 8 j + 2 (lane % 4) + {0, 1} of rows lane / 4 and lane / 4 + 8.
  template <DataType type, int width>
  SLUICE_DEVICE void write_box(const float (&values)[Accumulators<config>::kPerBlock], int first_q, arch::SharedAddress buffer) const {
    const int thread = arch::thread_in_warpgroup(), warp = thread / 32, lane = thread % 32;
    // Without this the compiler computes the results of all chunks before the first is written, and runs out of registers.
    const float alpha = arch::opaque(params_.alpha);
    if constexpr (type == DataType::fp32) {
      Fp32Boxes<config>::template write<width>(params_, values, first_q, alpha, buffer);
    } else {
      // Lane 8 i + r gives the address of row r of matrix i: 0 and 1 are 8 columns of Q by 16 rows of P, 2 and 3 the next 8 columns.
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

  const EpilogueParams& params_;
  arch::SharedAddress buffers_;
  int barrier_id_;
  int first_block_;
};

}  // namespace sluice
