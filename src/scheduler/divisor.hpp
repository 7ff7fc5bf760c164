// Division of numbers from 0 to 2^31 - 1 by one that is the same for a whole schedule.
#pragma once

#include <bit>
#include <cstdint>

#include "core/host_device.hpp"

namespace sluice {

// a / b, b above 0: often a plain case, and a GPU divides in some 150 cycles. NOLINTNEXTLINE(clang-analyzer-core.DivideZero)
SLUICE_HOST_DEVICE constexpr std::int32_t quotient(std::int32_t a, std::int32_t b) { return a < b ? 0 : b == 1 ? a : a / b; }

// Made at once, divides slowly.
class PlainDivisor {
 public:
  PlainDivisor() = default;
  SLUICE_HOST_DEVICE constexpr explicit PlainDivisor(std::int32_t divisor) : divisor_(divisor) {}
  SLUICE_HOST_DEVICE constexpr std::int32_t quotient(std::int32_t a) const { return sluice::quotient(a, divisor_); }

 private:
  std::int32_t divisor_ = 1;
};

// Made by the CPU, divides in two instructions: multiplies by the next number above 2^(31 + s) / divisor, with s the least for which 2^s is
// not below the divisor. What this adds to a / divisor is less than 1 / divisor. (Granlund and Montgomery, PLDI 1994, section 4.)
class Reciprocal {
 public:
  Reciprocal() = default;
  constexpr explicit Reciprocal(std::int32_t divisor) {
    if (divisor <= 1) return;  // 0, of what a schedule lacks, is never divided by
    const auto by = static_cast<std::uint32_t>(divisor);
    shift_ = static_cast<std::uint32_t>(std::bit_width(by - 1));
    multiplier_ = static_cast<std::uint32_t>((std::uint64_t{1} << (31 + shift_)) / by + 1);
  }
  SLUICE_HOST_DEVICE constexpr std::int32_t quotient(std::int32_t a) const {
    const std::uint64_t product = std::uint64_t{2 * static_cast<std::uint32_t>(a)} * multiplier_;
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(product >> 32) >> shift_);
  }

 private:
  std::uint32_t multiplier_ = (1u << 31) + 1, shift_ = 0;
};

}  // namespace sluice
