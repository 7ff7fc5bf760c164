#include "core/leaves_first.hpp"

#include <cstdint>

#include "core/expected_rows.hpp"
#include "core/groups.hpp"
#include "core/tile_parts.hpp"

namespace sluice {
namespace {

// Groups of few rows: their sizes differ, but next to none has more rows than a tile, so that weights are fetched once. (One H200, 27
// November 2026: 32 groups of about 20 x 4096 x 2048 in FP8 70.6 to 65.9 us, in bf16 133.5 to 127.4. Where more groups reach into a second
// tile, as 32 of about 67 rows do in tiles of 128, it is 1 to 2% slower.)
bool in_one_row_of_tiles(const GemmProblem& p, const KernelConfig& kernel) {
  constexpr int kMostTimesExpected = 3;
  return is_grouped(p) && kMostTimesExpected * expected_rows(p) <= kernel.tile_m;
}

// Pieces of few tiles, all of which are at the same part of K. (The same day: 128 x 128 x 131072 20.3 to 19.2 us, 256 x 256 x 32768 14.0 to
// 13.5, 512 x 512 x 16384 19.9 to 19.0; with 32 readers 64 x 2048 x 16384 18.3 to 19.3.)
bool all_read_together(const SchedulerParams& s, std::int64_t readers) {
  constexpr std::int64_t kMostReaders = 8;
  return s.splits > 1 && readers <= kMostReaders;
}

// Whole tiles of 128 rows of 16-bit operands, whose results are a good part of what goes through L2: weights that leave first cost 0 to 3%
// where there is one row of such tiles (one H200, the same day: 128 x 57344 x 8192 241.6 to 234.0 us, 128 x 7168 x 5120 22.9 to 22.2; with
// 64 rows from 2% slower to 2% faster, with 16 and less 0.4 to 4% slower).
bool beside_large_results(const Plan& plan) {
  constexpr int kLargeRows = 128;
  const KernelConfig& c = plan.kernel;
  return c.tile_m >= kLargeRows && plan.scheduler.splits == 1 && !is_grouped(plan.problem) && !promotes(c) && !dequantises(c);
}

// `tiles` of each of so many products ask for each byte of an operand, whose matrices lie `stride` apart.
bool leaves_first(const SchedulerParams& s, std::int32_t tiles, std::int64_t matrices, std::int64_t stride) {
  const std::int64_t readers = matrices > 1 && stride == 0 ? tiles * matrices : tiles;
  return readers == 1 || all_read_together(s, readers);
}

}  // namespace

bool a_leaves_first(const Plan& plan) {
  return leaves_first(plan.scheduler, plan.scheduler.tiles_n, row_matrices(plan.problem), plan.problem.batch_stride_a);
}

bool b_leaves_first(const Plan& plan) {
  const std::int32_t tiles_m = in_one_row_of_tiles(plan.problem, plan.kernel) ? 1 : plan.scheduler.tiles_m;
  return !beside_large_results(plan) && leaves_first(plan.scheduler, tiles_m, plan.problem.batch, plan.problem.batch_stride_b);
}

}  // namespace sluice
