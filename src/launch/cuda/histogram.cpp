// histogram(): binds pointers to a plan and enqueues its kernel, behind one that clears the counts.
#include "sluice/histogram.hpp"

#include <cuda_runtime_api.h>

#include "core/check_histogram.hpp"
#include "core/histogram_config.hpp"
#include "kernel/histogram/histogram_entry.hpp"
#include "launch/bind_histogram.hpp"
#include "launch/cuda/cuda_status.hpp"
#include "launch/cuda/one_kernel.hpp"

namespace sluice {
namespace {

// What a plan needs of the current device. Attributes alone: current_device() asks for more, and takes longer.
Result<DeviceSpec> device_to_plan_for() {
  if (Status s = check_hopper(); !s) return s.error();
  int device = 0, shared = 0;
  if (Status s = cuda_status(cudaGetDevice(&device), "no usable GPU"); !s) return s.error();
  cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  Result<DeviceSpec> spec = find_device("h200");  // ways are to be compared, and keep their order on its smaller brothers
  if (!spec) return spec;
  spec->sm_count = current_sm_count();
  spec->shared_memory_per_cta_bytes = shared;
  return spec;
}

Status run(const HistogramPlan& given, const HistogramArguments& arguments, int shared_limit, Stream stream) {
  HistogramPlan plan = given;
  const Result<HistogramProblem> valid = check_plan(plan, shared_limit);
  if (!valid) return valid.error();
  plan.problem = *valid;
  if (Status s = check_arguments(*valid, arguments); !s) return s;
  if (is_empty(*valid)) return Nothing{};
  BoundHistogram bound = bind(plan, arguments);
  // The one that counts fetches samples while this one clears, and waits before it touches the counts.
  if (const PlainLaunch clear{.kernel = clear_counts_entry(), .ctas = bound.clearing_ctas, .threads_per_cta = kClearThreads};
      clear.ctas > 0)
    if (Status s = enqueue(clear, &bound.params, stream); !s) return s;
  if (bound.grid_ctas == 0) return Nothing{};
  const void* const kernel = find_histogram_kernel(histogram_config(valid->sample, plan.way),
                                                   []<HistogramConfig listed>() { return histogram_kernel_entry<listed>(); });
  const auto shared = static_cast<int>(histogram_shared_bytes(plan.way, counted_bins(*valid)));
  if (Status s =
          cuda_status(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_limit), "cudaFuncSetAttribute");
      !s)
    return s;
  return enqueue({.kernel = kernel, .ctas = bound.grid_ctas, .threads_per_cta = kHistogramThreads, .shared_memory_bytes = shared},
                 &bound.params, stream);
}

}  // namespace

Status histogram(const HistogramProblem& problem, const HistogramArguments& arguments, Stream stream) {
  const Result<HistogramProblem> valid = validate(problem);
  if (!valid) return valid.error();
  if (Status s = check_arguments(*valid, arguments); !s) return s;
  const Result<DeviceSpec> device = device_to_plan_for();
  if (!device) return device.error();
  const Result<HistogramPlan> plan = plan_histogram(*valid, *device);
  if (!plan) return plan.error();
  return run(*plan, arguments, device->shared_memory_per_cta_bytes, stream);
}

Status histogram(const HistogramPlan& plan, const HistogramArguments& arguments, Stream stream) {
  const Result<DeviceSpec> device = device_to_plan_for();
  if (!device) return device.error();
  return run(plan, arguments, device->shared_memory_per_cta_bytes, stream);
}

}  // namespace sluice
