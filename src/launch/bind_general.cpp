#include "launch/bind_general.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/kernel_layout.hpp"
#include "scheduler/workspace.hpp"

namespace sluice {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t step) { return (value + step - 1) / step * step; }

// A plan for the largest group that there may be, whose tensor maps are those that each group's are made from. What differs between groups
// is as it is best, and the kernel that prepares them sees to those that have it otherwise.
Plan plan_of_largest(const Plan& plan) {
  constexpr int kPacketBytes = 16;
  Plan largest = plan;
  GemmProblem& p = largest.problem;
  const int operand_elems = kPacketBytes / size_bytes(p.type_a), result_elems = kPacketBytes / size_bytes(p.type_d);
  p.grouping = Grouping::none;
  p.n = round_up(p.n, result_elems);  // whole packets: the copy engine may store D
  p.lda = p.ldb = round_up(std::max<std::int64_t>(p.k, 1), operand_elems);
  p.ldc = p.ldd = p.n;
  p.batch = 2;  // the same matrices again: the maps' third direction is then not K (core/load_boxes.hpp)
  p.batch_stride_a = p.batch_stride_b = p.batch_stride_c = p.batch_stride_d = 0;
  p.ld_scale_a = p.ld_scale_b = 1;
  p.batch_stride_scale_a = p.batch_stride_scale_b = 0;
  return largest;
}

// Some group's scales may come as runs, whatever the largest group's do: what lies in the ring behind them must be numbers.
void expect_runs(ScaleParams& scales) { scales.runs = scales.strides.along_k; }

}  // namespace

Result<GeneralGemmParams> bind_general(const Plan& plan, const GemmArguments& arguments, void* workspace, EncodeTensorMap encode) {
  const GemmProblem& p = plan.problem;
  if (!computes_general_groups(plan.kernel))
    return Error{ErrorCode::unsupported, "the plan has " + name(plan.kernel) + " compute general groups, which it cannot; plan again"};
  const std::int64_t needed = kFlagBytes + prepared_bytes(p.batch);
  if (plan.workspace_bytes < static_cast<std::size_t>(needed))
    return Error{ErrorCode::invalid_argument, "the plan asks for " + std::to_string(plan.workspace_bytes) + " bytes of workspace, its " +
                                                  std::to_string(p.batch) + " groups need " + std::to_string(needed) + "; plan again"};
  if (const auto behind = reinterpret_cast<std::uintptr_t>(workspace) % kPreparedAlignmentBytes; behind != 0)
    return Error{ErrorCode::misaligned, "the workspace starts " + std::to_string(behind) + " bytes behind a multiple of " +
                                            std::to_string(kPreparedAlignmentBytes) + ", where tensor maps cannot lie; move it"};
  std::byte* const prepared = static_cast<std::byte*>(workspace) + kFlagBytes;
  const auto* const scales = reinterpret_cast<const float*>(prepared);
  Result<GemmParams> bound =
      bind(plan_of_largest(plan),
           {.a = prepared, .b = prepared, .c = prepared, .d = prepared, .bias = prepared, .scale_a = scales, .scale_b = scales}, workspace,
           encode);
  if (!bound) return bound.error();
  expect_runs(bound->mainloop.scale_p);
  expect_runs(bound->mainloop.scale_q);
  const StoreChunks chunks = store_chunks(plan.kernel, size_bytes(p.type_d));
  return GeneralGemmParams{*bound,
                           {.arguments = arguments.group_arguments,
                            .sizes = reinterpret_cast<GroupSizes*>(prepared),
                            .prepared = reinterpret_cast<PreparedGroup*>(prepared + group_sizes_bytes(p.batch)),
                            .count = static_cast<std::int32_t>(p.batch),
                            .limits = group_limits(p),
                            .tile = {plan.kernel.tile_m, plan.kernel.tile_n, plan.kernel.tile_k},
                            .scales_a = {p.scaling_a, p.scale_layout_a},
                            .scales_b = {p.scaling_b, p.scale_layout_b},
                            .operand_bytes = size_bytes(p.type_a),
                            .result_bytes = size_bytes(p.type_d),
                            .swapped = swapped(plan.kernel),
                            .stores_chunks = chunks.count > 0,
                            .stores_rest = chunks.rest > 0}};
}

}  // namespace sluice
