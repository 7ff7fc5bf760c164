// For those who divide once: on a CPU, and where groups of rows make a schedule on the spot.
#pragma once

#include "scheduler/divisor.hpp"

namespace sluice {

class PlainDivisor {
 public:
  PlainDivisor() = default;
  SLUICE_HOST_DEVICE constexpr explicit PlainDivisor(std::int32_t divisor) : divisor_(divisor) {}
  SLUICE_HOST_DEVICE constexpr std::int32_t quotient(std::int32_t number) const { return sluice::quotient(number, divisor_); }

 private:
  std::int32_t divisor_ = 0;
};

}  // namespace sluice
