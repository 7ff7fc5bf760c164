// How often each value occurs: docs/histogram.md says how it is counted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/device.hpp"
#include "sluice/emulator.hpp"
#include "sluice/error.hpp"
#include "sluice/run.hpp"

namespace sluice {

enum class HistogramSample : std::uint8_t { int32, uint8, float32 };
const char* to_string(HistogramSample sample);  // "int32", "uint8", "float32"
std::optional<HistogramSample> parse_histogram_sample(std::string_view text);

enum class CountType : std::uint8_t { int32, int64 };
const char* to_string(CountType type);  // "int32", "int64"
constexpr int size_bytes(CountType type) { return type == CountType::int64 ? 8 : 4; }
std::optional<CountType> parse_count_type(std::string_view text);

// What becomes of values that belong to no bin.
enum class OutsideValues : std::uint8_t {
  ignored,
  clamped,  // below the first bin they count in it, above the last one in that
};

inline constexpr std::int64_t kLeastBins = 2, kMostBins = std::int64_t{1} << 20;

// Of `n` samples, `bins` counts, each exact. The bin of a sample x is
//   integers:  x - first                                  one value, one bin
//   float32:   (x - lower) * (bins / (upper - lower))     each step rounded to fp32, then towards zero; at most bins - 1
// for x in [first, first + bins), or [lower, upper). A NaN counts nowhere, clamped or not.
struct HistogramProblem {
  std::int64_t n = 0;
  std::int64_t bins = 256;  // from 2 to 1,048,576
  HistogramSample sample = HistogramSample::int32;
  CountType count_type = CountType::int32;
  OutsideValues outside = OutsideValues::ignored;
  std::int64_t first = 0;            // of integers; 0 to 255 for uint8
  float lower = 0.0f, upper = 1.0f;  // of float32
  bool accumulate = false;           // adds to the counts that are there, which must not overflow; else they are overwritten

  bool operator==(const HistogramProblem&) const = default;
};

// The same problem, or why it cannot be run.
Result<HistogramProblem> validate(const HistogramProblem& problem);

// Whether there is nothing to do: no samples, and nothing to be overwritten.
bool is_empty(const HistogramProblem& problem);

double sample_bytes(const HistogramProblem& problem);  // of all samples

// One line: "268435456 int32 into 65536 bins of int32".
std::string describe(const HistogramProblem& problem);

// Where a CTA counts.
enum class HistogramCounters : std::uint8_t {
  words,   // in words of shared memory; of bytes, which come fastest, with a copy of each for each lane
  fields,  // in words of shared memory of which several bins have a part each; what a part cannot hold goes to the result at once
  global,  // in the result itself, at L2
};

struct HistogramWay {
  HistogramCounters counters = HistogramCounters::words;
  int field_bits = 32;  // of a bin in shared memory: 32; 8 for fields
  int ranges = 1;       // words and fields: so many CTAs look at the same samples, each counting a part of the bins; 1, 2, 4, ...
  int copies = 1;       // words: of each counter; 1, 2, 4, ... 32

  bool operator==(const HistogramWay&) const = default;
};
std::string describe(const HistogramWay& way);  // "8-bit fields, 2 ranges"

struct HistogramCandidate {
  HistogramWay way;
  double memory_us = 0;    // samples through HBM, or through L2 where several CTAs look at them
  double counting_us = 0;  // additions, and the instructions around them
  double ending_us = 0;    // shared memory cleared and added to the result
  double total_us = 0;     // launches and all; memory and counting overlap
  std::string refused;     // why it cannot be taken; empty: it can
};

struct HistogramPlan {
  HistogramProblem problem;
  HistogramWay way;
  int groups = 1;  // of CTAs that look at the same samples; the grid has groups * ranges
  int shared_memory_bytes = 0;
  double predicted_us = 0;
  std::vector<HistogramCandidate> candidates;  // the chosen one is the first
};

// The way that should take least time on that device. The problem need not be validated.
Result<HistogramPlan> plan_histogram(const HistogramProblem& problem, const DeviceSpec& device);

// The same for a way that the caller wants.
Result<HistogramPlan> plan_histogram(const HistogramProblem& problem, const DeviceSpec& device, const HistogramWay& way);

// Several lines: what was chosen, why, and what the others would have taken.
std::string explain(const HistogramPlan& plan);

struct HistogramArguments {
  const void* samples = nullptr;  // aligned to one of them; not changed
  void* counts = nullptr;         // `bins` of them, aligned to one; no part of the samples
};

// Enqueues it on `stream` of the current device: no allocation, no synchronisation, no hidden state. Safe from many threads, legal during
// stream capture. Errors: those of validate(); null or misaligned pointers, a device that is not Hopper, CUDA errors.
Status histogram(const HistogramProblem& problem, const HistogramArguments& arguments, Stream stream);
// By a plan that has been made, for this device or one like it.
Status histogram(const HistogramPlan& plan, const HistogramArguments& arguments, Stream stream);

// The same in host memory, by plain loops. `threads` of 0 takes all cores.
Status histogram_on_cpu(const HistogramProblem& problem, const HistogramArguments& host_arguments, int threads = 0);

// The same by the kernels' own source on the emulated machine, in the calling thread; the first as planned for the built-in device h10.
// Errors: those of histogram(); ErrorCode::emulation when the kernel does something wrong.
Status histogram_on_emulator(const HistogramProblem& problem, const HistogramArguments& host_arguments,
                             const EmulatorOptions& options = {});
Status histogram_on_emulator(const HistogramPlan& plan, const HistogramArguments& host_arguments, const EmulatorOptions& options = {});

}  // namespace sluice
