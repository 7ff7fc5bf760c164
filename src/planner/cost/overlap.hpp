// How what overlaps adds up.
#pragma once

#include <cmath>
#include <initializer_list>

namespace sluice {

// Times that overlap, but not perfectly: between their maximum and their sum.
inline double overlap(std::initializer_list<double> parts, double exponent) {
  double sum = 0;
  for (double part : parts) sum += std::pow(part, exponent);
  return std::pow(sum, 1 / exponent);
}

}  // namespace sluice
