#include "launch/emulator/general_on_emulator.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "arch/emulated/emulator.hpp"
#include "core/check_arguments.hpp"
#include "core/check_general_groups.hpp"
#include "core/check_plan.hpp"
#include "core/kernel_layout.hpp"
#include "kernel/general/general_entry.hpp"
#include "launch/bind_general.hpp"
#include "launch/emulator/run_on_machine.hpp"
#include "launch/emulator/tensor_map.hpp"
#include "launch/kernel_map.hpp"
#include "launch/scope.hpp"
#include "scheduler/workspace.hpp"

namespace sluice {
namespace {

namespace emulated = arch::emulated;

// As the caller's must be: aligned, its flags cleared. What lies behind them is anything: here neither null nor false nor a number.
class Workspace {
 public:
  explicit Workspace(std::size_t bytes) : blocks_((bytes + sizeof(Block) - 1) / sizeof(Block)) {
    std::memset(data() + kFlagBytes / sizeof(float), 0xff, elems() * sizeof(float) - kFlagBytes);
  }
  float* data() { return blocks_.front().elems; }
  std::size_t elems() const { return blocks_.size() * (sizeof(Block) / sizeof(float)); }

 private:
  struct alignas(kPreparedAlignmentBytes) Block {
    float elems[kPreparedAlignmentBytes / sizeof(float)];
  };
  std::vector<Block> blocks_;
};

// The memory of all groups, by name.
std::vector<emulated::GlobalBuffer> buffers_of_groups(const GemmProblem& p, const GroupArguments* groups) {
  std::vector<emulated::GlobalBuffer> all;
  for (std::int64_t i = 0; i < p.batch; ++i) {
    const GroupArguments g = within(group_limits(p), groups[i]);
    if (g.m == 0) continue;
    const auto add = [&](const char* name, const void* data, std::int64_t rows, std::int64_t columns, std::int64_t leading, DataType type,
                         bool writable = false) {
      const auto elems = static_cast<std::size_t>((rows - 1) * leading + columns);
      all.push_back({.name = std::string(name) + " of group " + std::to_string(i),
                     .data = data,
                     .bytes = elems * static_cast<std::size_t>(size_bytes(type)),
                     .writable = writable});
    };
    add("D", g.d, g.m, g.n, g.ldd, p.type_d, true);  // before C, which may be the same
    if (g.k > 0) add("A", g.a, g.m, g.k, g.lda, p.type_a);
    if (g.k > 0) add("B", g.b, g.n, g.k, g.ldb, p.type_b);
    const GemmProblem one = validate(problem_of_group(p, g)).value();  // check_general_groups() has seen to it
    if (scale_elems_a(one) > 0) add("scale_a", g.scale_a, 1, scale_elems_a(one), 0, DataType::fp32);
    if (scale_elems_b(one) > 0) add("scale_b", g.scale_b, 1, scale_elems_b(one), 0, DataType::fp32);
    if (reads_c(p)) add("C", g.c, g.m, g.n, g.ldc, p.type_d);
    if (p.epilogue.bias != Bias::none) add("bias", g.bias, 1, p.epilogue.bias == Bias::per_row ? g.m : g.n, 0, p.type_d);
  }
  return all;
}

EmulatedGeneralKernel find_emulated_general_kernel(const KernelConfig& config) {
  static const KernelMap<EmulatedGeneralKernel, KernelSet::general> kernels(
      []<KernelConfig listed>() { return emulated_general_kernel<listed>(); });
  return kernels.find(config);
}

}  // namespace

Status run_general_on_emulator(const Plan& plan, const GemmArguments& arguments, const EmulatorOptions& options, const Progress& progress) {
  if (Status s = check_plan(plan); !s) return s;
  if (Status s = check_arguments(plan, arguments); !s) return s;
  if (Status s = check_options(options); !s) return s;
  const GemmProblem& p = plan.problem;
  if (is_empty(p)) return Nothing{};
  if (Status s = check_general_groups(p, arguments.group_arguments); !s) return s;
  const EmulatedGeneralKernel kernel = find_emulated_general_kernel(plan.kernel);
  if (kernel == nullptr) return not_in_this_build(plan.kernel);
  Workspace workspace(plan.workspace_bytes);
  const Result<GeneralGemmParams> params = bind_general(plan, arguments, workspace.data(), encode_emulated_tensor_map);
  if (!params) return params.error();

  const emulated::GlobalBuffer prepared{.name = "workspace", .data = workspace.data(), .bytes = plan.workspace_bytes, .writable = true};
  emulated::Launch preparation{.clusters = params->general.count,
                               .threads_per_cta = kPrepareThreads,
                               .shared_memory_bytes = kPrepareSharedBytes,
                               .buffers = {prepared,
                                           {.name = "group_arguments",
                                            .data = arguments.group_arguments,
                                            .bytes = static_cast<std::size_t>(p.batch) * sizeof(GroupArguments)}}};
  if (Status s = run_on_machine("prepare_groups", preparation, options, [&] { emulated_prepare_groups_kernel()(*params); }); !s) return s;
  const int cluster = cluster_size(plan.kernel);
  emulated::Launch product{.clusters = plan.grid_ctas / cluster,
                           .ctas_per_cluster = cluster,
                           .threads_per_cta = threads_per_cta(plan.kernel),
                           .shared_memory_bytes = plan.shared_memory_bytes,
                           .buffers = buffers_of_groups(p, arguments.group_arguments),
                           .multiplies_unwritten = params->mainloop.p.stage_bytes < operand_bytes_p(plan.kernel) ||
                                                   params->mainloop.q.stage_bytes < operand_bytes_q(plan.kernel),
                           .progress = progress};
  product.buffers.push_back(prepared);
  if (Status s = run_on_machine(name(plan.kernel), product, options, [&] { kernel(*params); }); !s) return s;
  if (Status s = check_flags_cleared(plan.kernel, workspace.data(), workspace.elems()); !s) return s;
  if (progress) progress(1.0);
  return Nothing{};
}

}  // namespace sluice
