// CUDA's errors as Sluice's.
#pragma once

#include <cuda_runtime_api.h>
#include <string>

#include "sluice/error.hpp"

namespace sluice {

inline Status cuda_status(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return Nothing{};
  return Error{ErrorCode::cuda, std::string(what) + ": " + cudaGetErrorString(error) + " (" + cudaGetErrorName(error) + ")"};
}

}  // namespace sluice
