// Rounding between fp32 and the 16-bit types, to nearest even. 16-bit numbers are handled as their bits.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "arch/sm90/device.cuh"

namespace sluice::arch {

SLUICE_DEVICE std::uint16_t float_to_bf16(float x) { return __bfloat16_as_ushort(__float2bfloat16_rn(x)); }
SLUICE_DEVICE std::uint16_t float_to_fp16(float x) { return __half_as_ushort(__float2half_rn(x)); }
SLUICE_DEVICE float bf16_to_float(std::uint16_t bits) { return __bfloat162float(__ushort_as_bfloat16(bits)); }
SLUICE_DEVICE float fp16_to_float(std::uint16_t bits) { return __half2float(__ushort_as_half(bits)); }

// The same bits.
SLUICE_DEVICE float as_float(int x) { return __int_as_float(x); }

// Two at once, `low` in the lower half.
SLUICE_DEVICE std::uint32_t pack_bf16(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const std::uint32_t&>(pair);
}
SLUICE_DEVICE std::uint32_t pack_fp16(float low, float high) {
  const __half2 pair = __floats2half2_rn(low, high);
  return reinterpret_cast<const std::uint32_t&>(pair);
}

}  // namespace sluice::arch
