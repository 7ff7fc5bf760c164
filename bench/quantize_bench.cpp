#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "bench/device_memory.hpp"
#include "bench/device_random.hpp"
#include "bench/operation_cases.hpp"
#include "bench/sizing.hpp"
#include "bench/stream_copy.hpp"
#include "bench/timing.hpp"
#include "sluice/device.hpp"
#include "sluice/quantize.hpp"

namespace sluice::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kCheckedRows = 256;  // the first ones, which is two blocks; the tests check the rest of the world

// Activations of models of several widths, and what feeds their second product.
std::vector<QuantizeProblem> all_cases() {
  struct Shape {
    std::int64_t m, k;
    DataType type;
  };
  std::vector<QuantizeProblem> cases;
  for (const Shape& shape : {Shape{4096, 7168, DataType::bf16},
                             {8192, 7168, DataType::bf16},
                             {16384, 7168, DataType::bf16},
                             {16384, 7168, DataType::fp16},
                             {4096, 4096, DataType::fp32},
                             {16384, 4096, DataType::fp32}})
    for (const QuantizeInput input : {QuantizeInput::plain, QuantizeInput::silu_times})
      for (const Scaling scaling : {Scaling::per_vector, Scaling::per_vector_128, Scaling::per_block_128})
        for (const Layout layout : {Layout::row_major, Layout::column_major}) {
          if (layout == Layout::column_major && scaling != Scaling::per_vector_128) continue;  // few scales
          cases.push_back(*validate(QuantizeProblem{
              .m = shape.m, .k = shape.k, .type_x = shape.type, .input = input, .scaling = scaling, .scale_layout = layout}));
        }
  return cases;
}

// Where the parts of a set of operands lie, in bytes from its beginning. x and y are neighbours, so that the copy reads both.
struct SetLayout {
  std::size_t matrix, y, q, scale, all;
  explicit SetLayout(const QuantizeProblem& p) {
    const auto elements = static_cast<std::size_t>(p.m * p.k);
    matrix = elements * static_cast<std::size_t>(size_bytes(p.type_x));
    y = matrix;
    q = p.input == QuantizeInput::silu_times ? 2 * matrix : matrix;
    scale = q + padded(elements);
    all = scale + padded(static_cast<std::size_t>(scale_elems(p)) * sizeof(float));
  }
  std::size_t q_bytes() const { return scale - q; }
};

struct CaseResult {
  QuantizeProblem problem;
  Timing quantize, copy;
  double bytes = 0, copy_bytes = 0;
  std::string wrong;  // empty: it is right

  double gb_per_s() const { return bytes / quantize.us * 1e-3; }
  double copy_gb_per_s() const { return copy_bytes / copy.us * 1e-3; }
  double ratio() const { return gb_per_s() / copy_gb_per_s(); }
};

class QuantizeMeasurement {
 public:
  // Results alone, of all sets, are three times L2: what is written must leave it, and not be written over there the next time.
  QuantizeMeasurement(const QuantizeProblem& problem, std::size_t l2_bytes)
      : problem_(problem),
        layout_(problem),
        sets_(static_cast<int>(std::max<std::size_t>(2, 3 * l2_bytes / layout_.q_bytes() + 1))),
        memory_(layout_.all * static_cast<std::size_t>(sets_)) {
    const std::int64_t elements = problem.m * problem.k * (problem.input == QuantizeInput::silu_times ? 2 : 1);
    for (int set = 0; set < sets_; ++set)
      fill_random(set_at(set), problem.type_x, {.length = elements, .pitch = elements}, Distribution::normal,
                  static_cast<std::uint64_t>(set) + 1, stream_);
  }

  CaseResult measure(double seconds) {
    const Enqueue quantise = [this](int set, cudaStream_t stream) {
      if (const Status s = quantize(problem_, arguments(set), stream); !s) throw DeviceFailure(s.error().message);
    };
    std::vector<Enqueue> copies;
    for (const CopyHint hint : {CopyHint::none, CopyHint::streaming})
      copies.emplace_back([this, hint](int set, cudaStream_t stream) {
        stream_copy(set_at(set), set_at(set) + layout_.q, layout_.q, reads_per_write(), hint, stream);
      });
    CaseResult result{.problem = problem_};
    result.bytes = bytes_moved(problem_);
    result.copy_bytes = static_cast<double>(problem_.m * problem_.k) * (reads_per_write() + 1);
    quantise(0, stream_);
    result.wrong = verify();
    const Enqueue& copy = copies[fastest(copies, sets_, stream_)];
    std::tie(result.quantize, result.copy) = time_beside(quantise, copy, sets_, seconds, stream_);
    return result;
  }

 private:
  std::byte* set_at(int set) const { return memory_.data() + static_cast<std::size_t>(set) * layout_.all; }
  QuantizeArguments arguments(int set) const {
    return {.x = set_at(set),
            .y = set_at(set) + layout_.y,
            .q = set_at(set) + layout_.q,
            .scale = reinterpret_cast<float*>(set_at(set) + layout_.scale)};
  }
  int reads_per_write() const { return static_cast<int>(layout_.q / static_cast<std::size_t>(problem_.m * problem_.k)); }

  // The first rows of set 0 beside what the CPU makes of them. exp() may differ by as much as makes a number another by one step.
  std::string verify() {
    QuantizeProblem part = problem_;
    part.m = std::min(part.m, kCheckedRows);
    if (part.scale_layout == Layout::row_major) part.ld_scale = problem_.ld_scale;
    const auto elements = static_cast<std::size_t>(part.m * part.k), bytes = elements * static_cast<std::size_t>(size_bytes(part.type_x));
    std::vector<std::byte> x(bytes), y(bytes), got(elements), expected(elements);
    std::vector<float> scales(static_cast<std::size_t>(scale_elems(part)));
    const QuantizeArguments device = arguments(0);
    stream_.synchronize("quantising");
    check(cudaMemcpy(x.data(), device.x, bytes, cudaMemcpyDeviceToHost), "copying x");
    if (part.input == QuantizeInput::silu_times) check(cudaMemcpy(y.data(), device.y, bytes, cudaMemcpyDeviceToHost), "copying y");
    check(cudaMemcpy(got.data(), device.q, elements, cudaMemcpyDeviceToHost), "copying q");
    if (const Status s = quantize_on_cpu(part, {.x = x.data(), .y = y.data(), .q = expected.data(), .scale = scales.data()}); !s)
      return s.error().message;
    const int most = part.input == QuantizeInput::plain ? 0 : 1;
    for (std::size_t i = 0; i < elements; ++i)
      if (std::abs(std::to_integer<int>(got[i]) - std::to_integer<int>(expected[i])) > most && (got[i] | expected[i]) != std::byte{0x80})
        return fmt::format("number {} is {}, not {}", i, std::to_integer<int>(got[i]), std::to_integer<int>(expected[i]));
    return "";
  }

  QuantizeProblem problem_;
  SetLayout layout_;
  int sets_;
  DeviceBuffer memory_;
  DeviceStream stream_;
};

std::string table_row(const CaseResult& r) {
  return fmt::format("{:62} {:9.2f} {:9.0f} {:9.0f} {:7.3f}  {}\n", describe(r.problem), r.quantize.us, r.gb_per_s(), r.copy_gb_per_s(),
                     r.ratio(), r.wrong.empty() ? "" : "WRONG: " + r.wrong);
}

Json to_json(const CaseResult& r) {
  return {{"case", describe(r.problem)},
          {"m", r.problem.m},
          {"k", r.problem.k},
          {"us", r.quantize.us},
          {"spread", r.quantize.spread},
          {"bytes", r.bytes},
          {"gb_per_s", r.gb_per_s()},
          {"copy_us", r.copy.us},
          {"copy_spread", r.copy.spread},
          {"copy_gb_per_s", r.copy_gb_per_s()},
          {"ratio", r.ratio()},
          {"wrong", r.wrong}};
}

}  // namespace

Result<int> measure_quantize(const OperationBenchOptions& options) {
  const auto columns = fmt::format("{:62} {:>9} {:>9} {:>9} {:>7}", "", "us", "GB/s", "copy GB/s", "ratio");
  const auto measure = [&](const QuantizeProblem& problem, const DeviceSpec& device) {
    return QuantizeMeasurement(problem, static_cast<std::size_t>(device.l2_bytes)).measure(options.seconds_per_case);
  };
  const auto least_ratio = [](const std::vector<CaseResult>& results, bool right) {
    const auto worst =
        std::min_element(results.begin(), results.end(), [](const CaseResult& x, const CaseResult& y) { return x.ratio() < y.ratio(); });
    return fmt::format("The least of the ratios is {:.3f}{}\n", worst->ratio(), right ? "" : "; RESULTS ARE WRONG");
  };
  return measure_cases(options, all_cases(), columns, measure, least_ratio);
}

}  // namespace sluice::bench
