#include "core/line_use.hpp"

#include <cstdint>

#include "core/expected_rows.hpp"
#include "core/groups.hpp"

namespace sluice {
namespace {

// Groups of few rows: their sizes differ, but next to none has more rows than a tile, so that weights are fetched once.
bool in_one_row_of_tiles(const GemmProblem& p, const KernelConfig& kernel) {
  constexpr int kMostTimesExpected = 3;
  return is_grouped(p) && kMostTimesExpected * expected_rows(p) <= kernel.tile_m;
}

// Pieces of few tiles, all of which are at the same part of K. (One H200, 27 November 2026: 128 x 128 x 131072 20.3 to 19.2 us, 256 x 256 x
// 32768 14.0 to 13.5, 512 x 512 x 16384 19.9 to 19.0; with 32 readers 64 x 2048 x 16384 18.3 to 19.3.)
bool all_read_together(const SchedulerParams& s, std::int64_t readers) {
  constexpr std::int64_t kMostReaders = 8;
  return s.splits > 1 && readers <= kMostReaders;
}

LineUse use_of(const SchedulerParams& s, std::int64_t readers, std::int64_t readers_of_other) {
  if (readers == 1 || all_read_together(s, readers)) return LineUse::now;
  return readers_of_other == 1 ? LineUse::lasting : LineUse::again;
}

// How many tiles ask for each byte.
struct Readers {
  std::int64_t a, b;
};
Readers readers_of(const Plan& plan) {
  const GemmProblem& p = plan.problem;
  const auto readers = [](std::int32_t tiles, std::int64_t matrices, std::int64_t stride) {
    return matrices > 1 && stride == 0 ? tiles * matrices : tiles;
  };
  const std::int32_t tiles_m = in_one_row_of_tiles(p, plan.kernel) ? 1 : plan.scheduler.tiles_m;
  return {readers(plan.scheduler.tiles_n, row_matrices(p), p.batch_stride_a), readers(tiles_m, p.batch, p.batch_stride_b)};
}

}  // namespace

LineUse line_use_of_a(const Plan& plan) {
  const Readers readers = readers_of(plan);
  return use_of(plan.scheduler, readers.a, readers.b);
}

LineUse line_use_of_b(const Plan& plan) {
  const Readers readers = readers_of(plan);
  return use_of(plan.scheduler, readers.b, readers.a);
}

}  // namespace sluice
