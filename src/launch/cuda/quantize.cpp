// quantize(): binds pointers to a problem and enqueues one kernel.
#include "sluice/quantize.hpp"

#include <cuda_runtime_api.h>
#include <string>

#include "core/check_quantize.hpp"
#include "core/quantize_config.hpp"
#include "kernel/quantize/quantize_entry.hpp"
#include "launch/bind_quantize.hpp"
#include "launch/cuda/cuda_status.hpp"

namespace sluice {
namespace {

Status check_device() {
  int device = 0, major = 0, minor = 0;
  if (Status s = cuda_status(cudaGetDevice(&device), "no usable GPU"); !s) return s;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  if (major == 9 && minor == 0) return Nothing{};
  return Error{ErrorCode::wrong_device, "device " + std::to_string(device) + " has compute capability " + std::to_string(major) + "." +
                                            std::to_string(minor) + "; the kernels need 9.0 (Hopper)"};
}

Status launch(const QuantizeConfig& config, BoundQuantize& bound, Stream stream) {
  // The kernel waits for its predecessor itself, before it touches global memory: what overlaps is launch and set-up alone.
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t launch{};
  launch.gridDim = {static_cast<unsigned>(bound.grid_ctas), 1, 1};
  launch.blockDim = {static_cast<unsigned>(threads_per_cta(config)), 1, 1};
  launch.dynamicSmemBytes = static_cast<std::size_t>(shared_memory_bytes(config));
  launch.stream = stream;
  launch.attrs = &attribute;
  launch.numAttrs = 1;
  const void* const kernel = find_quantize_kernel(config, []<QuantizeConfig listed>() { return quantize_kernel_entry<listed>(); });
  void* arguments[] = {&bound.params};
  return cuda_status(cudaLaunchKernelExC(&launch, kernel, arguments), "kernel launch");
}

}  // namespace

Status quantize(const QuantizeProblem& problem, const QuantizeArguments& arguments, Stream stream) {
  const Result<QuantizeProblem> valid = validate(problem);
  if (!valid) return valid.error();
  if (Status s = check_arguments(*valid, arguments); !s) return s;
  if (is_empty(*valid)) return Nothing{};
  if (Status s = check_device(); !s) return s;
  BoundQuantize bound = bind(*valid, arguments);
  return launch(quantize_config(*valid), bound, stream);
}

}  // namespace sluice
