// How a tile of an operand lies in a stage: slabs of 128 bytes of K (64 elements of 16 bits), one after the other, always in rows of 128
// bytes, swizzled.
//   Major::k       one row for each vector (a row of A, a column of B), 64 elements of K long
//   Major::vector  blocks of 64 vectors; a block has one row for each of the 64 elements of K
#pragma once

#include "sluice/schedule.hpp"

#include "arch/arch.cuh"
#include "core/kernel_layout.hpp"
#include "kernel/gemm_params.cuh"

namespace sluice {

enum class Operand { p, q };

template <KernelConfig config, Operand operand>
struct OperandTile {
  static constexpr bool kIsP = operand == Operand::p;
  static constexpr bool kIsA = kIsP != swapped(config);
  static constexpr int kVectors = kIsP ? tile_p(config) : tile_q(config);
  static constexpr arch::Major kMajor = (kIsP ? k_major_p(config) : k_major_q(config)) ? arch::Major::k : arch::Major::vector;
  static constexpr int kRowElems = kSwizzleBytes / size_bytes(config.type_a);  // along the contiguous direction
  static constexpr int kBlockBytes = kWgmmaRows * kSwizzleBytes;               // 64 rows, and from 64 vectors to the next
  static constexpr int kEightRowsBytes = 8 * kSwizzleBytes;
  static constexpr int kSlabs = config.tile_k / kRowElems;
  static constexpr int kSlabBytes = kVectors * kSwizzleBytes;

  // CTAs of the cluster that each fetch a slice for all of them: a column of the cluster shares A's tile, a row of it B's.
  static constexpr int kSharers = kIsP ? sharers_p(config) : sharers_q(config);
  static constexpr int kSliceVectors = kVectors / kSharers;

  // This CTA's slice, and who is sent it: a bit for each CTA of the cluster, which counts along M first.
  static SLUICE_DEVICE int slice() {
    if constexpr (kSharers == 1) return 0;
    return kIsA ? arch::cta_in_cluster() / config.cluster_m : arch::cta_in_cluster() % config.cluster_m;
  }
  static SLUICE_DEVICE std::uint16_t sharers() {
    unsigned first = 0;  // of A's sharers: cluster_m apart; B's are neighbours
    for (int i = 0; i < kSharers; ++i) first |= 1u << (kIsA ? i * config.cluster_m : i);
    const int rank = arch::cta_in_cluster(), row = rank % config.cluster_m;
    return static_cast<std::uint16_t>(first << (kIsA ? row : rank - row));
  }

  static_assert(config.tile_k % kRowElems == 0, "a k-tile is made of swizzled rows");
  static_assert(kVectors % kSharers == 0 && kSliceVectors % 8 == 0, "slices start at multiples of the swizzle pattern");
  static_assert(kMajor == arch::Major::k || kSliceVectors % kRowElems == 0, "contiguous vectors come in whole blocks of 64");

  // The first of a work tile's vectors.
  static SLUICE_DEVICE int first_vector(const WorkTile& tile) { return kIsA ? tile.first_row : tile.tile_n * config.tile_n; }

  static SLUICE_DEVICE std::uint64_t descriptor(const std::byte* tile) {
    return arch::matrix_descriptor(tile, kBlockBytes, kEightRowsBytes);
  }

  // Where the 32 bytes of K of wgmma number `step` begin.
  static SLUICE_DEVICE constexpr int step_offset_bytes(int step) {
    constexpr int kDepthElems = arch::kWgmmaDepthBytes / size_bytes(config.type_a);
    constexpr int kStepsPerSlab = kRowElems / kDepthElems;
    constexpr int kStepBytes = kMajor == arch::Major::k ? arch::kWgmmaDepthBytes : kDepthElems * kSwizzleBytes;
    return step / kStepsPerSlab * kSlabBytes + step % kStepsPerSlab * kStepBytes;
  }
};

}  // namespace sluice
