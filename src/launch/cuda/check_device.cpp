#include "launch/cuda/check_device.hpp"

#include <cuda_runtime_api.h>
#include <string>

#include "launch/cuda/one_kernel.hpp"

namespace sluice {

Status check_device(const DeviceSpec& planned) {
  if (Status s = check_hopper(); !s) return s;
  int device = 0, sms = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device);
  if (sms >= planned.sm_count) return Nothing{};
  return Error{ErrorCode::wrong_device, "device " + std::to_string(device) + " has " + std::to_string(sms) +
                                            " SMs and the plan was made for the " + std::to_string(planned.sm_count) + " of " +
                                            planned.name + "; plan for current_device()"};
}

}  // namespace sluice
