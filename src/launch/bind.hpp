// From a plan and pointers to what a kernel is passed, on whichever machine it runs.
#pragma once

#include "sluice/error.hpp"
#include "sluice/plan_value.hpp"
#include "sluice/run.hpp"

#include "kernel/gemm_params.cuh"

namespace sluice {

// Matrices in memory, one behind the other: a batch, or the slabs of one. Extents and strides in elements.
struct GlobalTensor {
  const char* name;
  const void* data;
  DataType type;
  std::int64_t inner;  // contiguous
  std::int64_t outer;
  std::int64_t matrices;
  std::int64_t leading_elems;
  std::int64_t matrix_stride_elems;  // 0: the same one again
};

struct BoxShape {
  int inner;
  int outer;
  int matrices = 1;
};

// A machine's way to describe a tensor to its copy engine. Boxes are swizzled over their inner extent, which must be 16 (not swizzled), 32,
// 64 or 128 bytes.
using EncodeTensorMap = Result<arch::TensorMap> (*)(const GlobalTensor& tensor, BoxShape box);

Result<GemmParams> bind(const Plan& plan, const GemmArguments& arguments, void* workspace, EncodeTensorMap encode);

}  // namespace sluice
