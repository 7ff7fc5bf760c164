// Tensor maps: what the tensor memory accelerator must know of a matrix, encoded by the driver.
#pragma once

#include "sluice/error.hpp"
#include "sluice/plan.hpp"
#include "sluice/run.hpp"

#include "kernel/gemm_params.cuh"

namespace sluice {

// A batch of matrices in memory. Extents and strides in elements.
struct GlobalTensor {
  const char* name;
  const void* data;
  DataType type;
  std::int64_t inner;  // contiguous
  std::int64_t outer;
  std::int64_t batch;
  std::int64_t leading_elems;
  std::int64_t batch_stride_elems;
};

struct BoxShape {
  int inner;
  int outer;
};

// Boxes are swizzled over their inner extent, which must be 16 (not swizzled), 32, 64 or 128 bytes.
Result<arch::TensorMap> encode_tensor_map(const GlobalTensor& tensor, BoxShape box);

}  // namespace sluice
