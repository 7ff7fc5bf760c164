// Cases of histograms, for the emulator and the GPU: samples amid guards, counts that begin as rubbish, and what the CPU makes of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/histogram.hpp"

namespace sluice::gpu_tests {

enum class Samples : std::uint8_t {
  uniform,  // a quarter of them outside of the bins
  skewed,   // half of them one value, a quarter two others
  equal,
  special,  // the ends of the type; infinities and NaN
};

struct HistogramCase {
  HistogramProblem problem;
  HistogramWay way;
  int sms = 4;
  int offset_elems = 0;  // of the first sample behind a multiple of 16 bytes
  Samples samples = Samples::uniform;
};
std::string describe(const HistogramCase& c);

// `few`: what an emulator counts within seconds.
std::vector<HistogramCase> histogram_cases(bool few);

HistogramPlan plan_of(const HistogramCase& c);

struct HistogramOperands {
  std::vector<std::byte> samples;  // from `first`
  std::vector<std::byte> counts;   // between guards
  std::size_t first = 0;
  HistogramArguments arguments();
};
HistogramOperands make_operands(const HistogramCase& c, std::uint64_t seed);

// Empty: the counts and the guards around them are the same.
std::string differences(const HistogramCase& c, const HistogramOperands& got, const HistogramOperands& expected);

}  // namespace sluice::gpu_tests
