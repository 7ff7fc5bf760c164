// histogram_on_emulator(): binds host pointers to a plan and runs its kernels on the emulated machine.
#include <cstddef>
#include <vector>

#include "sluice/histogram.hpp"

#include "core/check_histogram.hpp"
#include "core/histogram_config.hpp"
#include "kernel/histogram/histogram_entry.hpp"
#include "launch/bind_histogram.hpp"
#include "launch/emulator/run_on_machine.hpp"

namespace sluice {
namespace {

namespace emulated = arch::emulated;

constexpr int kSharedBytes = 232448;  // of a Hopper

std::vector<emulated::GlobalBuffer> buffers(const HistogramProblem& p, const HistogramArguments& arguments) {
  // Samples are there before the kernel that clears the counts begins, and may be read before it ends.
  return {{.name = "samples", .data = arguments.samples, .bytes = static_cast<std::size_t>(sample_bytes(p)), .constant = !p.accumulate},
          {.name = "counts",
           .data = arguments.counts,
           .bytes = static_cast<std::size_t>(p.bins) * static_cast<std::size_t>(size_bytes(p.count_type)),
           .writable = true}};
}

}  // namespace

Status histogram_on_emulator(const HistogramPlan& given, const HistogramArguments& arguments, const EmulatorOptions& options) {
  HistogramPlan plan = given;
  const Result<HistogramProblem> valid = check_plan(plan, kSharedBytes);
  if (!valid) return valid.error();
  plan.problem = *valid;
  if (Status s = check_arguments(*valid, arguments); !s) return s;
  if (Status s = check_options(options); !s) return s;
  if (is_empty(*valid)) return Nothing{};
  const BoundHistogram bound = bind(plan, arguments);
  emulated::Launch launch{.clusters = bound.clearing_ctas, .threads_per_cta = kClearThreads, .buffers = buffers(*valid, arguments)};
  if (launch.clusters > 0)
    if (Status s = run_on_machine("histogram", launch, options, [&] { emulated_clear_counts()(bound.params); }); !s) return s;
  if (bound.grid_ctas == 0) return Nothing{};
  launch.clusters = bound.grid_ctas;
  launch.threads_per_cta = kHistogramThreads;
  launch.shared_memory_bytes = static_cast<int>(histogram_shared_bytes(plan.way, counted_bins(*valid)));
  const EmulatedHistogramKernel kernel = find_histogram_kernel(
      histogram_config(valid->sample, plan.way), []<HistogramConfig listed>() { return emulated_histogram_kernel<listed>(); });
  return run_on_machine("histogram", launch, options, [&] { kernel(bound.params); });
}

Status histogram_on_emulator(const HistogramProblem& problem, const HistogramArguments& arguments, const EmulatorOptions& options) {
  const Result<DeviceSpec> device = find_device("h10");
  if (!device) return device.error();
  const Result<HistogramPlan> plan = plan_histogram(problem, *device);
  if (!plan) return plan.error();
  return histogram_on_emulator(*plan, arguments, options);
}

}  // namespace sluice
