// Division by a number that is known long before: a GPU divides in some 150 cycles, and multiplies in five.
#pragma once

#include <cstdint>

#include "core/host_device.hpp"

namespace sluice {

// a / b of what is not negative; by 0, 0. Often a plain case. NOLINTNEXTLINE(clang-analyzer-core.DivideZero)
SLUICE_HOST_DEVICE constexpr std::int32_t quotient(std::int32_t a, std::int32_t b) { return a < b || b == 0 ? 0 : b == 1 ? a : a / b; }

// Multiplies by the reciprocal, rounded up: right for all numbers from 0 to 2^31 - 1 (Granlund and Montgomery, "Division by Invariant
// Integers using Multiplication", 1994, theorem 4.2, for 31 bits). By 0, 0.
class Reciprocal {
 public:
  Reciprocal() = default;
  SLUICE_HOST_DEVICE constexpr explicit Reciprocal(std::int32_t divisor) {
    if (divisor <= 0) return;
    while ((std::uint64_t{1} << shift_) < static_cast<std::uint64_t>(divisor)) ++shift_;
    multiplier_ = static_cast<std::uint32_t>(((std::uint64_t{1} << (31 + shift_)) - 1) / static_cast<std::uint64_t>(divisor) + 1);
  }
  // number * multiplier / 2^(31 + shift), the 32 low bits of the doubled product cut off at once.
  SLUICE_HOST_DEVICE constexpr std::int32_t quotient(std::int32_t number) const {
    const std::uint64_t product = static_cast<std::uint64_t>(2u * static_cast<std::uint32_t>(number)) * multiplier_;
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(product >> 32) >> shift_);
  }

 private:
  std::uint32_t multiplier_ = 0, shift_ = 0;
};

}  // namespace sluice
