#include "launch/emulator/tensor_map.hpp"

#include <exception>
#include <string>

#include "arch/emulated/emulator.hpp"

namespace sluice {
namespace {

namespace emulated = arch::emulated;

emulated::Element element(DataType type) {
  switch (type) {
    case DataType::bf16:
      return emulated::Element::bf16;
    case DataType::fp16:
      return emulated::Element::fp16;
    case DataType::e4m3:
    case DataType::e5m2:
      return emulated::Element::byte;
    case DataType::fp32:
    case DataType::int4:  // never a tensor
      break;
  }
  return emulated::Element::fp32;
}

}  // namespace

Result<arch::TensorMap> encode_emulated_tensor_map(const GlobalTensor& tensor, BoxShape box) {
  constexpr int kUnswizzledBytes = 16;
  const int bytes = size_bytes(tensor.type), row_bytes = box.inner * bytes;
  const bool one_matrix = tensor.matrices == 1 || tensor.matrix_stride_elems == 0;
  const std::int64_t pitch = tensor.leading_elems * bytes;
  try {
    return emulated::encode_tensor_map({.data = tensor.data,
                                        .element = element(tensor.type),
                                        .extents = {tensor.inner, tensor.outer, one_matrix ? 1 : tensor.matrices},
                                        .strides_bytes = {pitch, one_matrix ? pitch : tensor.matrix_stride_elems * bytes},
                                        .box = {box.inner, box.outer, box.matrices},
                                        .swizzle_bytes = row_bytes == kUnswizzledBytes ? 0 : row_bytes});
  } catch (const std::exception& broken) {
    return Error{ErrorCode::emulation, std::string(tensor.name) + ": " + broken.what()};
  }
}

}  // namespace sluice
