// run_on_emulator(): binds host pointers to a plan and runs its kernel on the emulated machine.
#include "sluice/emulator.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "arch/emulated/emulator.hpp"
#include "core/check_arguments.hpp"
#include "core/check_group_sizes.hpp"
#include "core/check_plan.hpp"
#include "core/groups.hpp"
#include "core/kernel_layout.hpp"
#include "core/kernel_line.hpp"
#include "core/launched_clusters.hpp"
#include "kernel/kernel_entry.hpp"
#include "launch/bind.hpp"
#include "launch/bind_places.hpp"
#include "launch/emulator/general_on_emulator.hpp"
#include "launch/emulator/run_on_machine.hpp"
#include "launch/emulator/tensor_map.hpp"
#include "launch/emulator/traced_on_emulator.hpp"
#include "launch/kernel_map.hpp"
#include "launch/scope.hpp"
#include "scheduler/workspace.hpp"

namespace sluice {
namespace {

namespace emulated = arch::emulated;

// What a batch of matrices covers, from its first element to its last.
std::size_t span_bytes(std::int64_t inner, std::int64_t outer, std::int64_t leading, std::int64_t batch, std::int64_t batch_stride,
                       DataType type) {
  if (inner <= 0 || outer <= 0) return 0;
  return static_cast<std::size_t>((batch - 1) * batch_stride + (outer - 1) * leading + inner) * static_cast<std::size_t>(size_bytes(type));
}

std::vector<emulated::GlobalBuffer> buffers(const GemmProblem& p, const GemmArguments& arguments) {
  const bool a_rows = p.layout_a == Layout::row_major, b_rows = p.layout_b == Layout::row_major;
  std::vector<emulated::GlobalBuffer> all;
  const auto add = [&](const char* name, const void* data, std::size_t bytes, bool writable, bool constant = false) {
    if (data != nullptr && bytes > 0)
      all.push_back({.name = name, .data = data, .bytes = bytes, .writable = writable, .constant = constant});
  };
  const std::int64_t matrices = row_matrices(p);
  add("D", arguments.d, span_bytes(p.n, p.m, p.ldd, matrices, p.batch_stride_d, p.type_d), true);  // before C, which may be the same
  if (reads_a_and_b(p)) {
    add("A", arguments.a, span_bytes(a_rows ? p.k : p.m, a_rows ? p.m : p.k, p.lda, matrices, p.batch_stride_a, p.type_a), false,
        p.constant_a);
    const std::size_t packed_bytes = static_cast<std::size_t>((p.batch - 1) * p.batch_stride_b + matrix_bytes_b(p));
    add("B", arguments.b,
        p.type_b == DataType::int4 ? packed_bytes
                                   : span_bytes(b_rows ? p.n : p.k, b_rows ? p.k : p.n, p.ldb, p.batch, p.batch_stride_b, p.type_b),
        false, p.constant_b);
    add("scale_a", arguments.scale_a, static_cast<std::size_t>(scale_elems_a(p)) * sizeof(float), false);
    add("scale_b", arguments.scale_b, static_cast<std::size_t>(scale_elems_b(p)) * sizeof(float), false);
  }
  add("scale_d", arguments.scale_d, static_cast<std::size_t>(scale_elems_d(p)) * sizeof(float), finds_scales(p));
  if (reads_c(p)) add("C", arguments.c, span_bytes(p.n, p.m, p.ldc, matrices, p.batch_stride_c, p.type_d), false);
  if (has_groups(p)) add("groups", arguments.groups, static_cast<std::size_t>(group_numbers(p)) * sizeof(std::int32_t), false);
  add("bias", arguments.bias, static_cast<std::size_t>(bias_elems(p) * size_bytes(bias_type(p.type_d))), false);
  return all;
}

// Whether rows of a stage that nothing was copied to are multiplied: they make sums that are not stored. Short boxes have zeros behind
// them.
bool multiplies_unwritten(const OperandParams& operand, int bytes, bool zeros_behind_boxes) {
  return (operand.stage_bytes < bytes && !zeros_behind_boxes) || operand.ends_early;
}

EmulatedKernel find_emulated_kernel(const KernelConfig& config) {
  static const KernelMap<EmulatedKernel> kernels([]<KernelConfig listed>() { return emulated_gemm_kernel<listed>(); });
  return kernels.find(config);
}

// Its CTAs have no SMs, but take places in turn: so no unit goes to the CTA of its own number.
std::optional<SmPlaces> places_backwards(int ctas) {
  SmPlaces places{};
  for (int i = 0; i < std::min(ctas, kMostPlaces); ++i) places[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(ctas - 1 - i);
  return places;
}

}  // namespace

bool built_with_emulator() { return true; }

Status check_flags_cleared(const KernelConfig& kernel, const float* workspace, std::size_t elems) {
  const auto* const end = workspace + std::min<std::size_t>(elems, kFlagBytes / sizeof(float));
  const auto* const left = std::find_if(workspace, end, [](float flag) { return std::bit_cast<std::uint32_t>(flag) != 0; });
  if (left == end) return Nothing{};
  return Error{ErrorCode::emulation, name(kernel) + ": flag " + std::to_string(left - workspace) +
                                         " of the workspace is not cleared when the kernel ends; the next run would go wrong"};
}

Status run_on_emulator(const Plan& plan, const GemmArguments& arguments, const EmulatorOptions& options, const Progress& progress) {
  if (is_general(plan.problem)) return run_general_on_emulator(plan, arguments, options, progress);
  if (Status s = check_group_sizes(plan.problem, arguments.groups); !s) return s;
  const auto find = [&](KernelScope scope) { return find_emulated_kernel(with_scope(plan.kernel, scope)); };
  return run_kernel_on_emulator(find, plan, arguments, {}, {}, options, progress);
}

Status run_kernel_on_emulator(const FindEmulatedKernel& find, const Plan& plan, const GemmArguments& arguments, TraceBuffer buffer,
                              const TraceParams& trace, const EmulatorOptions& options, const Progress& progress) {
  if (Status s = check_plan(plan); !s) return s;
  if (Status s = check_arguments(plan, arguments); !s) return s;
  if (Status s = check_options(options); !s) return s;
  if (is_empty(plan.problem)) return Nothing{};
  std::vector<float> workspace(plan.workspace_bytes / sizeof(float));  // flags of zero, sums of NaN
  if (!workspace.empty()) std::fill(workspace.begin() + kFlagBytes / 4, workspace.end(), std::numeric_limits<float>::quiet_NaN());
  Result<GemmParams> params = bind(plan, arguments, workspace.data(), encode_emulated_tensor_map);
  if (!params) return params.error();
  const EmulatedKernel kernel = find(scope_of(plan, params->epilogue.path));
  if (kernel == nullptr) return not_in_this_build(plan.kernel);
  bind_places(plan, workspace.data(), &places_backwards, *params);
  const TracedGemmParams all{*params, trace};

  const int cluster = launched_cluster_size(plan);
  emulated::Launch launch{
      .clusters = launched_ctas(plan) / cluster,
      .ctas_per_cluster = cluster,
      .threads_per_cta = threads_per_cta(plan.kernel),
      .shared_memory_bytes = plan.shared_memory_bytes,
      .buffers = buffers(plan.problem, arguments),
      .multiplies_unwritten = (!dequantises(plan.kernel) && multiplies_unwritten(params->mainloop.p, operand_bytes_p(plan.kernel),
                                                                                 rows_of_short_box(plan.problem, plan.kernel) > 0)) ||
                              multiplies_unwritten(params->mainloop.q, operand_bytes_q(plan.kernel), false),
      .progress = progress};
  if (params->places.taken != nullptr)
    launch.buffers.push_back(
        {.name = "places taken", .data = params->places.taken, .bytes = kPlaceFlags * sizeof(float), .writable = true, .handed_on = true});
  if (!workspace.empty())
    launch.buffers.push_back({.name = "workspace", .data = workspace.data(), .bytes = plan.workspace_bytes, .writable = true});
  if (buffer.data != nullptr) launch.buffers.push_back({.name = "trace", .data = buffer.data, .bytes = buffer.bytes, .writable = true});
  if (Status s = run_on_machine(name(plan.kernel), launch, options, [&] { kernel(all); }); !s) return s;
  if (Status s = check_flags_cleared(plan.kernel, workspace.data(), workspace.size()); !s) return s;
  if (progress) progress(1.0);
  return Nothing{};
}

}  // namespace sluice
