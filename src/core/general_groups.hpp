// What general groups come to (Grouping::general): decided here for the kernels, the reference and the checks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sluice/group_arguments.hpp"
#include "sluice/kernel_config.hpp"
#include "sluice/problem.hpp"
#include "sluice/run.hpp"

#include "core/groups.hpp"
#include "core/host_device.hpp"
#include "core/scale_layout.hpp"

namespace sluice {

// Whether the list has the kernel for general groups, too.
bool computes_general_groups(const KernelConfig& kernel);

// The largest sizes that a group may have. Without alpha K is not looked at.
struct GroupLimits {
  std::int32_t m, n, k;
};
inline GroupLimits group_limits(const GemmProblem& p) {
  const std::int64_t k = p.epilogue.alpha == 0.0f ? 0 : p.k;
  return {static_cast<std::int32_t>(p.m), static_cast<std::int32_t>(p.n), static_cast<std::int32_t>(k)};
}

// A group as it is computed, from what its caller says.
SLUICE_HOST_DEVICE constexpr GroupArguments within(const GroupLimits& limits, GroupArguments g) {
  const auto clamped = [](std::int32_t value, std::int32_t most) { return value < 0 ? 0 : value > most ? most : value; };
  g.m = clamped(g.m, limits.m);
  g.n = clamped(g.n, limits.n);
  if (g.m == 0 || g.n == 0) g.m = g.n = 0;
  g.k = g.m == 0 ? 0 : clamped(g.k, limits.k);
  if (g.lda == kPacked) g.lda = g.k;
  if (g.ldb == kPacked) g.ldb = g.k;
  if (g.ldc == kPacked) g.ldc = g.n;
  if (g.ldd == kPacked) g.ldd = g.n;
  return g;
}

// One group as a problem by itself, for those who have all groups in host memory. `g`: within().
inline GemmProblem problem_of_group(GemmProblem p, const GroupArguments& g) {
  p.grouping = Grouping::none;
  p.expected_rows = p.most_rows = 0;
  p.batch = 1;
  p.m = g.m, p.n = g.n, p.k = g.k;
  p.lda = g.k == 0 ? kPacked : g.lda;
  p.ldb = g.k == 0 ? kPacked : g.ldb;
  p.ldc = p.epilogue.beta == 0.0f || g.m == 0 ? kPacked : g.ldc;
  p.ldd = g.m == 0 ? kPacked : g.ldd;
  p.ld_scale_a = g.k > 0 && scales_along_k(p.scaling_a) ? g.ld_scale_a : kPacked;
  p.ld_scale_b = g.k > 0 && scales_along_k(p.scaling_b) ? g.ld_scale_b : kPacked;
  return p;
}
inline GemmArguments arguments_of_group(const GroupArguments& g) {
  return {.a = g.a, .b = g.b, .c = g.c, .d = g.d, .bias = g.bias, .scale_a = g.scale_a, .scale_b = g.scale_b};
}

// How the scales of one operand lie, in every group.
struct ScaleForm {
  Scaling scaling = Scaling::none;
  Layout layout = Layout::row_major;
};
// Those of one group's, whose operand has so many vectors.
SLUICE_HOST_DEVICE constexpr ScaleStrides scale_strides_of_group(const ScaleForm& form, std::int64_t vectors, std::int64_t k,
                                                                 std::int64_t leading) {
  if (leading == kPacked) leading = packed_scale_leading(form.scaling, scale_matrix(form.scaling, form.layout, vectors, k));
  return scale_strides(form.scaling, form.layout, leading, 0);
}

// The workspace begins with the flags of all plans; behind them lie the sizes of all groups and what the copy engine and the epilogue must
// know of each, written by a kernel of its own before the product (kernel/general/).
inline constexpr int kPrepareThreads = 128, kPrepareSharedBytes = 4 * 128;  // of that kernel: a warp and a map for each of four
inline constexpr std::int64_t kGroupSizesBytes = 16, kPreparedGroupBytes = 768, kPreparedAlignmentBytes = 256;
constexpr std::int64_t group_sizes_bytes(std::int64_t groups) {
  return (groups * kGroupSizesBytes + kPreparedAlignmentBytes - 1) / kPreparedAlignmentBytes * kPreparedAlignmentBytes;
}
constexpr std::int64_t prepared_bytes(std::int64_t groups) { return group_sizes_bytes(groups) + groups * kPreparedGroupBytes; }

}  // namespace sluice
