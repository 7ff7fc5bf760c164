#include "bench/sizing.hpp"

#include <algorithm>
#include <cmath>

namespace sluice::bench {
namespace {

constexpr std::size_t kMostSets = 1024;  // tiny products: a graph of this many launches is as long as we make them

std::size_t room_of(std::int64_t elements, int element_bytes) { return padded(static_cast<std::size_t>(elements * element_bytes)); }

GemmProblem validated(const Shape& shape) {
  const Result<GemmProblem> problem = validate(problem_of(shape, {}));
  return problem ? *problem : GemmProblem{};  // what cannot be run takes no memory
}

}  // namespace

SetBytes::SetBytes(const Shape& shape) {
  const GemmProblem p = validated(shape);
  a = room_of(p.m * p.lda, size_bytes(p.type_a));
  b = has_w4(shape) ? room_of(matrix_bytes_b(p), 1) : room_of(p.n * p.ldb, size_bytes(p.type_b));
  if (has_w4(shape)) {
    dense_b = room_of(p.n * p.k, size_bytes(p.type_a));
    codes = room_of(p.n * p.k / 2, 1);
    code_scales = room_of(p.n * w4_groups(p.k, kBenchW4), size_bytes(kCodeScales));
  }
  d = room_of(p.m * p.n, size_bytes(p.type_d));
  scale_a = room_of(p.batch_stride_scale_a, sizeof(float));  // as for a batch: from the first to where the next matrix's would begin
  scale_b = room_of(p.batch_stride_scale_b, sizeof(float));
}

int rotating_set_count(const Shape& shape, std::size_t l2_bytes, std::size_t most_bytes) {
  const SetBytes bytes(shape);
  const std::size_t set = bytes.all(), rotating = has_w4(shape) ? bytes.b : set;
  const std::size_t wanted = std::clamp<std::size_t>(sets_past_cache(rotating, l2_bytes), 2, kMostSets);
  const std::size_t once = bytes.d + bytes.codes + bytes.code_scales;
  const std::size_t fitting = most_bytes > once ? (most_bytes - once) / std::max<std::size_t>(set + bytes.dense_b, 1) : 0;
  return static_cast<int>(std::min(wanted, fitting));
}

int launches_for(double estimated_us, int sets, double graph_us) {
  const double wanted = std::ceil(graph_us / std::max(estimated_us, 0.5));
  const int fewest = estimated_us < 2000 ? 4 : 2;
  return std::max({static_cast<int>(wanted), fewest, sets});
}

int rounds_within(double seconds, double round_us, int given, double turn_us) {
  constexpr int kLongTurns = 3;
  if (given > 0) return given;
  if (turn_us > 0) return kLongTurns;
  return static_cast<int>(std::clamp(seconds * 1e6 / std::max(round_us, 1.0), 7.0, 25.0));
}

}  // namespace sluice::bench
