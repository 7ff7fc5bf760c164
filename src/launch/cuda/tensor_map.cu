#include "launch/cuda/tensor_map.hpp"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <bit>
#include <string>

namespace sluice {
namespace {

using Encode = decltype(&cuTensorMapEncodeTiled);

// The driver is asked for the function at run time, so that the library links without libcuda and loads where there is none. It wants a
// context, which a thread that has called nothing but launches does not have: setting its device makes one.
Encode find_encode() {
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess || cudaSetDevice(device) != cudaSuccess) return nullptr;
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  constexpr unsigned kFirstVersionWithIt = 12000;
  const auto asked = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, kFirstVersionWithIt, cudaEnableDefault, &found);
  return asked == cudaSuccess && found == cudaDriverEntryPointSuccess ? reinterpret_cast<Encode>(function) : nullptr;
}

CUtensorMapDataType driver_type(DataType type) {
  if (is_fp8(type)) return CU_TENSOR_MAP_DATA_TYPE_UINT8;
  if (type == DataType::fp32) return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  return type == DataType::bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
}

CUtensorMapSwizzle swizzle(int inner_bytes) {
  if (inner_bytes == 16) return CU_TENSOR_MAP_SWIZZLE_NONE;
  if (inner_bytes == 32) return CU_TENSOR_MAP_SWIZZLE_32B;
  return inner_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B : CU_TENSOR_MAP_SWIZZLE_128B;
}

}  // namespace

Result<arch::TensorMap> encode_tensor_map(const GlobalTensor& tensor, BoxShape box) {
  static thread_local const Encode encode = find_encode();
  if (encode == nullptr) return Error{ErrorCode::cuda, "the driver has no cuTensorMapEncodeTiled; install a driver for CUDA 12.0 or newer"};
  const auto bytes = static_cast<cuuint64_t>(size_bytes(tensor.type));
  const bool one_matrix = tensor.matrices == 1 || tensor.matrix_stride_elems == 0;
  const auto pitch = static_cast<cuuint64_t>(tensor.leading_elems) * bytes;
  const cuuint64_t extents[3] = {static_cast<cuuint64_t>(tensor.inner), static_cast<cuuint64_t>(tensor.outer),
                                 one_matrix ? 1 : static_cast<cuuint64_t>(tensor.matrices)};
  const cuuint64_t strides[2] = {pitch, one_matrix ? pitch : static_cast<cuuint64_t>(tensor.matrix_stride_elems) * bytes};
  const cuuint32_t box_extents[3] = {static_cast<cuuint32_t>(box.inner), static_cast<cuuint32_t>(box.outer),
                                     static_cast<cuuint32_t>(box.matrices)};
  const cuuint32_t element_strides[3] = {1, 1, 1};
  CUtensorMap map;
  // Promoted to 256 bytes, weights of 57344 x 8192 come at 4.15 instead of 4.48 TB/s (one H200, 21 November 2026).
  const CUresult result = encode(&map, driver_type(tensor.type), 3, const_cast<void*>(tensor.data), extents, strides, box_extents,
                                 element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle(box.inner * static_cast<int>(bytes)),
                                 CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    return Error{ErrorCode::cuda, std::string("the driver refused a tensor map for ") + tensor.name + " (" + std::to_string(tensor.inner) +
                                      " x " + std::to_string(tensor.outer) + ", pitch " + std::to_string(pitch) + " bytes), CUresult " +
                                      std::to_string(static_cast<int>(result))};
  return std::bit_cast<arch::TensorMap>(map);
}

}  // namespace sluice
