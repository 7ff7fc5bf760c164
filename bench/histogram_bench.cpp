#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "bench/device_memory.hpp"
#include "bench/histogram_samples.hpp"
#include "bench/operation_cases.hpp"
#include "bench/sizing.hpp"
#include "bench/stream.hpp"
#include "bench/timing.hpp"
#include "sluice/device.hpp"
#include "sluice/histogram.hpp"

namespace sluice::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Case {
  HistogramProblem problem;
  SampleLaw law = SampleLaw::uniform;
};

std::string describe(const Case& c) {
  constexpr const char* kLaws[] = {"uniform", "zipf", "equal"};
  return sluice::describe(c.problem) + ", " + kLaws[static_cast<int>(c.law)];
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const std::int64_t n : {std::int64_t{1} << 24, std::int64_t{1} << 28})
    for (const std::int64_t bins : {256, 4096, 16384, 65536, 262144, 1048576})
      for (const SampleLaw law : {SampleLaw::uniform, SampleLaw::zipf, SampleLaw::equal})
        cases.push_back({.problem = {.n = n, .bins = bins}, .law = law});
  return cases;
}

struct CaseResult {
  Case what;
  std::string way;
  double predicted_us = 0;
  Timing histogram, read;
  std::string wrong;  // empty: it is right

  double tb_per_s() const { return sample_bytes(what.problem) / histogram.us * 1e-6; }
  double read_tb_per_s() const { return sample_bytes(what.problem) / read.us * 1e-6; }
  double ratio() const { return read.us / histogram.us; }
};

class HistogramMeasurement {
 public:
  // Samples of all sets are three times L2.
  HistogramMeasurement(const Case& what, const DeviceSpec& device)
      : case_(what),
        set_bytes_(static_cast<std::size_t>(sample_bytes(what.problem))),
        sets_(static_cast<int>(std::max<std::size_t>(1, 3 * static_cast<std::size_t>(device.l2_bytes) / set_bytes_ + 1))),
        samples_(set_bytes_ * static_cast<std::size_t>(sets_)),
        counts_(static_cast<std::size_t>(what.problem.bins) * sizeof(std::int32_t)),
        plan_(*plan_histogram(what.problem, device)) {
    const auto bins = static_cast<std::size_t>(what.problem.bins);
    std::vector<float> cumulative(bins);
    double sum = 0;
    for (std::size_t bin = 0; bin < bins; ++bin) sum += 1.0 / static_cast<double>(bin + 1);
    double upto = 0;
    for (std::size_t bin = 0; bin < bins; ++bin) cumulative[bin] = static_cast<float>((upto += 1.0 / static_cast<double>(bin + 1)) / sum);
    const DeviceBuffer table(bins * sizeof(float));
    check(cudaMemcpy(table.data(), cumulative.data(), bins * sizeof(float), cudaMemcpyHostToDevice), "copying a table");
    for (int set = 0; set < sets_; ++set)
      fill_samples(reinterpret_cast<std::int32_t*>(samples_at(set)), what.problem.n, what.problem.bins, what.law,
                   reinterpret_cast<const float*>(table.data()), static_cast<std::uint64_t>(set) + 1, stream_);
    stream_.synchronize("drawing samples");
  }

  CaseResult measure(double seconds) {
    const Enqueue count = [this](int set, cudaStream_t stream) {
      if (const Status s = histogram(plan_, {.samples = samples_at(set), .counts = counts_.data()}, stream); !s)
        throw DeviceFailure(s.error().message);
    };
    const Enqueue read = [this](int set, cudaStream_t stream) { stream_through(samples_at(set), set_bytes_, stream); };
    CaseResult result{.what = case_, .way = sluice::describe(plan_.way), .predicted_us = plan_.predicted_us};
    check(cudaMemset(counts_.data(), 0xcd, counts_.size_bytes()), "filling the counts");
    count(0, stream_);
    result.wrong = verify();
    std::tie(result.histogram, result.read) = time_beside(count, read, sets_, seconds, stream_);
    return result;
  }

 private:
  std::byte* samples_at(int set) const { return samples_.data() + static_cast<std::size_t>(set) * set_bytes_; }

  // Every count of set 0 beside the CPU's.
  std::string verify() {
    const auto bins = static_cast<std::size_t>(case_.problem.bins);
    std::vector<std::byte> samples(set_bytes_);
    std::vector<std::int32_t> got(bins), expected(bins);
    stream_.synchronize("counting");
    check(cudaMemcpy(samples.data(), samples_at(0), set_bytes_, cudaMemcpyDeviceToHost), "copying samples");
    check(cudaMemcpy(got.data(), counts_.data(), counts_.size_bytes(), cudaMemcpyDeviceToHost), "copying counts");
    if (const Status s = histogram_on_cpu(case_.problem, {.samples = samples.data(), .counts = expected.data()}); !s)
      return s.error().message;
    for (std::size_t bin = 0; bin < bins; ++bin)
      if (got[bin] != expected[bin]) return fmt::format("bin {} has {}, not {}", bin, got[bin], expected[bin]);
    return "";
  }

  Case case_;
  std::size_t set_bytes_;
  int sets_;
  DeviceBuffer samples_, counts_;
  HistogramPlan plan_;
  DeviceStream stream_;
};

std::string table_row(const CaseResult& r) {
  return fmt::format("{:52} {:26} {:9.1f} {:9.1f} {:6.2f} {:6.2f} {:6.3f}  {}\n", describe(r.what), r.way, r.histogram.us, r.predicted_us,
                     r.tb_per_s(), r.read_tb_per_s(), r.ratio(), r.wrong.empty() ? "" : "WRONG: " + r.wrong);
}

Json to_json(const CaseResult& r) {
  return {{"case", describe(r.what)}, {"n", r.what.problem.n},        {"bins", r.what.problem.bins},        {"way", r.way},
          {"us", r.histogram.us},     {"spread", r.histogram.spread}, {"predicted_us", r.predicted_us},     {"tb_per_s", r.tb_per_s()},
          {"read_us", r.read.us},     {"read_spread", r.read.spread}, {"read_tb_per_s", r.read_tb_per_s()}, {"ratio", r.ratio()},
          {"wrong", r.wrong}};
}

}  // namespace

Result<int> measure_histogram(const OperationBenchOptions& options) {
  const auto columns = fmt::format("{:52} {:26} {:>9} {:>9} {:>6} {:>6} {:>6}", "", "way", "us", "predicted", "TB/s", "read", "ratio");
  const auto measure = [&](const Case& c, const DeviceSpec& device) {
    return HistogramMeasurement(c, device).measure(options.seconds_per_case);
  };
  return measure_cases(options, all_cases(), columns, measure, say_if_wrong<CaseResult>);
}

}  // namespace sluice::bench
