#include "launch/cuda/one_kernel.hpp"

#include <cuda_runtime_api.h>
#include <string>

#include "launch/cuda/cuda_status.hpp"

namespace sluice {

Status check_hopper() {
  int device = 0, major = 0, minor = 0;
  if (Status s = cuda_status(cudaGetDevice(&device), "no usable GPU"); !s) return s;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  if (major == 9 && minor == 0) return Nothing{};
  return Error{ErrorCode::wrong_device, "device " + std::to_string(device) + " has compute capability " + std::to_string(major) + "." +
                                            std::to_string(minor) + "; the kernels need 9.0 (Hopper)"};
}

int current_sm_count() {
  int device = 0, sms = 0;
  if (cudaGetDevice(&device) != cudaSuccess || cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device) != cudaSuccess)
    return 0;
  return sms;
}

Status enqueue(const PlainLaunch& launch, void* params, Stream stream) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = {static_cast<unsigned>(launch.ctas), 1, 1};
  config.blockDim = {static_cast<unsigned>(launch.threads_per_cta), 1, 1};
  config.dynamicSmemBytes = static_cast<std::size_t>(launch.shared_memory_bytes);
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = 1;
  void* arguments[] = {params};
  return cuda_status(cudaLaunchKernelExC(&config, launch.kernel, arguments), "kernel launch");
}

}  // namespace sluice
