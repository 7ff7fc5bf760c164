// The ring of kernels for FP8 operands: a stage's scales come and go with it.
#pragma once

#include "kernel/pipeline.cuh"

namespace sluice {

// Q's vectors that have one scale wherever its tile begins, if blocks of 128 have one each. Such scales lie in the ring a few times for
// each chunk: read by all lanes at one address, a word would go into a register of the whole warp, which the compiler waits for at once.
inline constexpr int kChunkCopies = 4;
template <KernelConfig config>
inline constexpr int kScaleChunk = largest_power_of_two_divisor(tile_q(config), kScaleBlockElems);

template <KernelConfig config>
class ScaledPipeline : public Pipeline<config> {
  static_assert(cluster_size(config) == 1, "pairs of CTAs that share a tile of FP8 have never been faster than two that do not");

 public:
  using Position = typename Pipeline<config>::Position;
  using Pipeline<config>::Pipeline;
  using Pipeline<config>::kLayout;

  // The scales of one of the stage's blocks of K: of P's vectors, then of Q's.
  SLUICE_DEVICE arch::SharedAddress scales_p(const Position& at, int block) const {
    constexpr int kBlockBytes = (tile_p(config) + tile_q(config)) * static_cast<int>(sizeof(float));
    return arch::shared_address(this->shared_ + kLayout.scale_offset) +
           static_cast<std::uint32_t>(at.stage * scale_bytes(config) + block * kBlockBytes);
  }
  SLUICE_DEVICE arch::SharedAddress scales_q(const Position& at, int block) const {
    return scales_p(at, block) + tile_p(config) * static_cast<int>(sizeof(float));
  }

  // As Pipeline::release(), but ordinary reads of the scales must be over, too.
  SLUICE_DEVICE void release(const Position& at) const {
    arch::sync_warp();  // all lanes have read theirs
    Pipeline<config>::release(at);
  }
};

}  // namespace sluice
