// Fills the ring with ordinary loads, for operands that the tensor memory accelerator cannot address: any alignment, any stride.
// Writes the very layout that TMA would have written, so that the consumers need not know.
#pragma once

#include "kernel/gemm_params.cuh"
#include "kernel/mainloop/operand_tile.cuh"
#include "kernel/pipeline.cuh"

namespace sluice {

template <KernelConfig config>
class ThreadProducer {
 public:
  using Ring = Pipeline<config>;
  static_assert(cluster_size(config) == 1, "threads cannot write into other CTAs' stages");
  static_assert(config.tile_k * sizeof(std::uint16_t) == kSwizzleBytes, "one slab a stage");

  // Used by all the threads of the producing warps.
  static constexpr bool kAlone = false;

  SLUICE_DEVICE ThreadProducer(const MainloopParams& params, const Ring& ring) : params_(params), ring_(ring) {}

  // Nothing is fetched early: this path is not there for speed.
  SLUICE_DEVICE void load(typename Ring::Position& at, const WorkTile& tile, bool first) const {
    if (first) arch::wait_for_predecessor();
    SLUICE_NO_UNROLL
    for (int k_tile = tile.k_begin; k_tile < tile.k_end; ++k_tile) {
      ring_.wait_empty(at);
      copy_tile<Operand::p>(params_.p, params_.k, ring_.stage_p(at), OperandTile<config, Operand::p>::first_vector(tile),
                            k_tile * config.tile_k, tile.group);
      copy_tile<Operand::q>(params_.q, params_.k, ring_.stage_q(at), OperandTile<config, Operand::q>::first_vector(tile),
                            k_tile * config.tile_k, tile.group);
      arch::fence_shared_for_async();  // wgmma reads what these ordinary stores wrote
      arch::barrier_arrive(ring_.full_barrier(at));
      at.advance();
    }
  }

 private:
  using Bits = std::uint16_t;  // an element: only moved, never computed with
  static constexpr int kPacketElems = 16 / sizeof(Bits);

  template <Operand operand>
  static SLUICE_DEVICE void copy_tile(const OperandParams& params, int k, std::byte* tile, int first_vector, int first_k, int batch) {
    using Tile = OperandTile<config, operand>;
    constexpr bool k_major = Tile::kMajor == arch::Major::k;
    constexpr int kPacketsPerRow = kSwizzleBytes / 16;
    constexpr int kRows = k_major ? Tile::kVectors : Tile::kVectors / Tile::kRowElems * config.tile_k;
    const Bits* matrix = static_cast<const Bits*>(params.data) + batch * params.batch_stride_elems;
    const int inner_limit = k_major ? k : params.vectors;  // extents of the matrix
    const int outer_limit = k_major ? params.vectors : k;
    const arch::SharedAddress target = arch::shared_address(tile);

    SLUICE_NO_UNROLL
    for (int i = arch::thread_in_warpgroup(); i < kRows * kPacketsPerRow; i += producing_warps(config) * 32) {
      const int row = i / kPacketsPerRow, packet = i % kPacketsPerRow;
      const int block = k_major ? 0 : row / config.tile_k;
      const int outer = k_major ? first_vector + row : first_k + row % config.tile_k;
      const int inner = (k_major ? first_k : first_vector + block * Tile::kRowElems) + packet * kPacketElems;
      std::uint32_t words[kPacketElems / 2]{};
      if (outer < outer_limit) {
        const Bits* source = matrix + outer * params.leading_elems;
        SLUICE_UNROLL
        for (int e = 0; e < kPacketElems; ++e)
          if (inner + e < inner_limit) words[e / 2] |= static_cast<std::uint32_t>(arch::load_global(source + inner + e)) << (16 * (e % 2));
      }
      const int swizzled = packet ^ (row % kPacketsPerRow);
      arch::store_shared(target + static_cast<std::uint32_t>(row * kSwizzleBytes + swizzled * 16), words);
    }
  }

  const MainloopParams& params_;
  const Ring& ring_;
};

}  // namespace sluice
