// What the bytes of a TensorMap hold on the emulated machine.
#pragma once

#include "arch/emulated/emulator.hpp"
#include "arch/emulated/engine.hpp"

namespace sluice::arch::emulated {

inline constexpr int kDimensions = 3;

struct EncodedTensor {
  static constexpr std::uint32_t kMagic = 0x534c4d50;

  std::uint32_t magic = kMagic;
  Element element{};
  std::uint8_t swizzle_bytes = 0;
  std::uint16_t box[kDimensions]{};
  std::byte* data = nullptr;
  std::uint64_t extents[kDimensions]{};
  std::uint64_t strides_bytes[kDimensions]{};  // the first: the element's size
};
static_assert(sizeof(EncodedTensor) <= sizeof(TensorMap));

// As the copy engine reads it for the running thread, which must have acquired a map that lies in global memory.
EncodedTensor decode(const TensorMap& map, const Location& at);

}  // namespace sluice::arch::emulated
