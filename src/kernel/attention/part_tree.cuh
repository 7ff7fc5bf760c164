// Bringing parts of a row together in an order that the sequence alone decides: chunks 2i and 2i + 1 meet, then those pairs, and so on. Who
// has taken which chunks, and how many in one go, makes no difference to any bit of the result.
#pragma once

#include "arch/warp_mma.cuh"
#include "core/attention_config.hpp"
#include "kernel/attention/workspace.cuh"

namespace sluice {

// What has come and waits for its neighbour, a part for each level, in shared memory: sums of each thread's own, and statistics of each
// row.
class PartTree {
 public:
  SLUICE_DEVICE PartTree(arch::SharedAddress sums, int sums_pitch, arch::SharedAddress statistics, int statistics_pitch)
      : sums_(sums), statistics_(statistics), sums_pitch_(sums_pitch), statistics_pitch_(statistics_pitch) {}

  // x has 2^level chunks from chunk `begin` on, or what is left of them. Parts come in order. When x is the last, the result has all; one
  // of a row's threads keeps its statistics.
  SLUICE_DEVICE RowPart add(RowPart x, int begin, int level, bool is_last, bool keeps_statistics) const {
    for (; is_last ? begin >> level != 0 : (begin >> level & 1) != 0; ++level)
      if ((begin >> level & 1) != 0) x = together(at(level), x);
    if (!is_last) {
      const std::uint32_t o[4] = {arch::as_bits(x.o[0]), arch::as_bits(x.o[1]), arch::as_bits(x.o[2]), arch::as_bits(x.o[3])};
      arch::store_shared(sums_ + level * sums_pitch_, o);
      if (keeps_statistics) arch::store_shared(statistics_ + level * statistics_pitch_, x.maximum, x.sum);
    }
    return x;
  }

 private:
  SLUICE_DEVICE RowPart at(int level) const {
    RowPart x{};
    float statistics[2];
    arch::load_shared(sums_ + level * sums_pitch_, x.o);
    arch::load_shared(statistics_ + level * statistics_pitch_, statistics);
    x.maximum = statistics[0];
    x.sum = statistics[1];
    return x;
  }

  arch::SharedAddress sums_, statistics_;
  int sums_pitch_, statistics_pitch_;
};

}  // namespace sluice
