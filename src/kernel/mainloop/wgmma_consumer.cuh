// Empties the ring into the accumulators of one warpgroup.
#pragma once

#include "kernel/gemm_params.cuh"
#include "kernel/mainloop/operand_tile.cuh"
#include "kernel/pipeline.cuh"

namespace sluice {

// The accumulators of one thread: for each block of 64 rows of P, tile_q / 2 fp32 values in wgmma's order.
template <KernelConfig config>
struct Accumulators {
  static constexpr int kBlocks = blocks_per_warpgroup(config);
  static constexpr int kPerBlock = tile_q(config) / 2;
  float values[kBlocks][kPerBlock];

  SLUICE_DEVICE void clear() {
    SLUICE_UNROLL
    for (int block = 0; block < kBlocks; ++block) {
      SLUICE_UNROLL
      for (int i = 0; i < kPerBlock; ++i) values[block][i] = 0.0f;
    }
  }
};

// Of the 64 rows of a block, the first that this thread has accumulators of; the other is 8 further down.
SLUICE_DEVICE int first_row_in_block() { return arch::thread_in_warpgroup() / 32 * 16 + arch::lane() / 4; }

// blocks: of its accumulators, those that it multiplies, and columns of Q; the others become zeros.
template <KernelConfig config, int blocks, int columns = tile_q(config)>
class WgmmaConsumer {
 public:
  using Ring = Pipeline<config>;
  using TileP = OperandTile<config, Operand::p>;
  using TileQ = OperandTile<config, Operand::q>;

  // first_block: which 64 rows of P this warpgroup begins with.
  SLUICE_DEVICE WgmmaConsumer(const MainloopParams&, const Ring& ring, int first_block) : ring_(ring), first_block_(first_block) {}

  // When the last wgmma is under way, `issued` is called, then the results are waited for.
  template <class Issued>
  SLUICE_DEVICE void multiply(Accumulators<config>& sums, typename Ring::Position& at, int k_tiles, Issued&& issued) const {
    // Zeros rather than a first wgmma that overwrites: with the latter the compiler sees the old tile's sums live on, and keeps two sets.
    sums.clear();
    typename Ring::Position previous = at;
    SLUICE_NO_UNROLL
    for (int k_tile = 0; k_tile < k_tiles; ++k_tile) {
      ring_.wait_full(at);
      arch::wgmma_fence();
      const std::uint64_t p = TileP::descriptor(ring_.stage_p(at) + first_block_ * TileP::kBlockBytes);
      const std::uint64_t q = TileQ::descriptor(ring_.stage_q(at));
      SLUICE_UNROLL
      for (int step = 0; step < config.tile_k * size_bytes(config.type_a) / arch::kWgmmaDepthBytes; ++step) {
        SLUICE_UNROLL
        for (int block = 0; block < blocks; ++block)
          arch::wgmma<config.type_a, TileP::kMajor, TileQ::kMajor>(
              reinterpret_cast<float(&)[columns / 2]>(sums.values[block]),
              arch::advance_descriptor(p, TileP::step_offset_bytes(step) + block * TileP::kBlockBytes),
              arch::advance_descriptor(q, TileQ::step_offset_bytes(step)));
      }
      arch::wgmma_commit();
      // One group stays in flight; the one before it is finished, and its stage free.
      arch::wgmma_wait<1>();
      if (k_tile > 0) ring_.release(previous);
      previous = at;
      at.advance();
    }
    issued();
    arch::wgmma_wait<0>();
    if (k_tiles > 0) ring_.release(previous);
  }

 private:
  const Ring& ring_;
  int first_block_;
};

}  // namespace sluice
