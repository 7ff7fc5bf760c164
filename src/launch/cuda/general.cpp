#include "launch/cuda/general.hpp"

#include <string>

#include "kernel/general/general_entry.hpp"
#include "launch/bind_general.hpp"
#include "launch/cuda/one_kernel.hpp"
#include "launch/cuda/tensor_map.hpp"
#include "launch/cuda/traced.hpp"
#include "launch/kernel_map.hpp"
#include "launch/scope.hpp"

namespace sluice {
namespace {

const void* find_general_kernel(const KernelConfig& config) {
  static const KernelMap<const void*, KernelSet::general> kernels([]<KernelConfig listed>() { return general_kernel_entry<listed>(); });
  return kernels.find(config);
}

}  // namespace

Status run_general(const Plan& plan, const GemmArguments& arguments, void* workspace, Stream stream) {
  const void* const kernel = find_general_kernel(plan.kernel);
  if (kernel == nullptr) return not_in_this_build(plan.kernel);
  Result<GeneralGemmParams> params = bind_general(plan, arguments, workspace, encode_tensor_map);
  if (!params) return params.error();
  if (Status s = enqueue({.kernel = prepare_groups_kernel_entry(),
                          .ctas = params->general.count,
                          .threads_per_cta = kPrepareThreads,
                          .shared_memory_bytes = kPrepareSharedBytes},
                         &*params, stream);
      !s)
    return s;
  return launch(plan, kernel, &*params, stream);
}

}  // namespace sluice
