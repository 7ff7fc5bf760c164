#include "bench/bench.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>

#include <fmt/format.h>

#include "bench/environment.hpp"
#include "bench/measurement.hpp"

namespace sluice {
namespace bench {
namespace {

constexpr int kRight = 0, kWrong = 1, kCouldNotRun = 2;

Error cannot(const std::string& message) { return {ErrorCode::invalid_argument, message}; }

Result<std::vector<Shape>> shapes_for(const BenchOptions& options) {
  Result<std::vector<Shape>> found = find_shapes(options.suite);
  if (!found) return found;
  std::vector<Shape> shapes = filter_shapes(std::move(*found), options);
  if (shapes.empty()) return cannot("the filter leaves no shape of suite " + options.suite + "; widen the range of m or the text");
  return shapes;
}

Status check_options(const BenchOptions& options) {
  for (const std::string& rival : options.rivals)
    if (rival != "cublaslt" && rival != "cublaslt-best")
      return cannot("no rival is called '" + rival + "'; known are cublaslt and cublaslt-best");
  if (options.rounds < 0) return cannot(fmt::format("rounds = {} is negative; 0 chooses", options.rounds));
  if (!(options.seconds_per_shape > 0)) return cannot(fmt::format("seconds_per_shape = {} must be above 0", options.seconds_per_shape));
  return Nothing{};
}

void show_progress(std::size_t done, std::size_t all, const Shape& shape) {
  const bool terminal = isatty(fileno(stderr)) != 0;
  if (terminal) fmt::print(stderr, "\r\033[K[{}/{}] {}", done + 1, all, to_string(shape));
  if (!terminal && (done % 10 == 0 || done + 1 == all)) fmt::print(stderr, "[{}/{}] {}\n", done + 1, all, to_string(shape));
  std::fflush(stderr);
}

void end_progress() {
  if (isatty(fileno(stderr)) != 0) fmt::print(stderr, "\r\033[K");
}

bool any_wrong(const BenchReport& report) {
  return std::any_of(report.results.begin(), report.results.end(), [](const ShapeResult& r) {
    return !r.wrong.empty() || std::any_of(r.kernels.begin(), r.kernels.end(), [](const KernelTiming& k) { return !k.wrong.empty(); });
  });
}

Status write_json(const std::string& path, const BenchReport& report) {
  std::ofstream file(path);
  file << to_json(report);
  file.close();
  if (!file) return Error{ErrorCode::io, "cannot write " + path + "; choose another place with --out"};
  return Nothing{};
}

// The GPU breaks on the way: what was measured so far is still reported, and `broken` says why it ends there.
void measure_all(const BenchOptions& options, Measurement& measurement, const std::vector<Shape>& shapes, BenchReport& report,
                 std::string& broken) {
  if (!options.json) fmt::print("{}", table_header(report));
  for (std::size_t i = 0; i < shapes.size() && broken.empty(); ++i) {
    show_progress(i, shapes.size(), shapes[i]);
    try {
      report.results.push_back(measurement.measure(shapes[i]));
    } catch (const DeviceFailure& failure) {
      broken = failure.what();
      report.results.push_back({.shape = shapes[i], .wrong = broken});
    }
    end_progress();
    if (!options.json) fmt::print("{}", table_row(report.results.back(), options.all_kernels));
    std::fflush(stdout);
  }
}

// With `json` stdout holds one document whatever happens, in the form of the command line tool's errors.
int report_failure(const Error& error, bool json) {
  fmt::print(stderr, "sluice bench: {}\n", error.message);
  if (json) fmt::print("{}", error_to_json(error, kCouldNotRun));
  return kCouldNotRun;
}

Result<int> run_checked(const BenchOptions& options) {
  if (Status s = check_options(options); !s) return s.error();
  Result<std::vector<Shape>> shapes = shapes_for(options);
  if (!shapes) return shapes.error();
  Result<DeviceSpec> device = current_device();
  if (!device) return device.error();
  Result<std::shared_ptr<const CublasLt>> cublaslt = CublasLt::load();
  const bool needed = !options.rivals.empty() && !options.all_kernels;
  if (!cublaslt && needed) return cublaslt.error();
  if (!cublaslt) fmt::print(stderr, "cuBLASLt is missing; results are checked by samples only: {}\n", cublaslt.error().message);

  BenchReport report{.environment = current_environment(), .all_kernels = options.all_kernels};
  if (!options.all_kernels) report.rivals = options.rivals;
  if (cublaslt) report.environment.cublaslt = (*cublaslt)->version();
  std::string broken;
  {
    Measurement measurement(options, *shapes, *device, cublaslt ? *cublaslt : nullptr);
    measure_all(options, measurement, *shapes, report, broken);
    if (broken.empty()) report.environment.after = gpu_state();
  }
  fmt::print("{}", options.json ? to_json(report) : table_footer(report));
  if (!options.out.empty())
    if (Status s = write_json(options.out, report); !s) return s.error();
  if (!broken.empty()) fmt::print(stderr, "the benchmark ended early: {}\n", broken);
  return any_wrong(report) ? kWrong : kRight;
}

}  // namespace
}  // namespace bench

int run_bench(const BenchOptions& options) {
  try {
    const Result<int> outcome = bench::run_checked(options);
    return outcome ? *outcome : bench::report_failure(outcome.error(), options.json);
  } catch (const std::exception& failure) {
    return bench::report_failure({ErrorCode::cuda, failure.what()}, options.json);
  }
}

}  // namespace sluice
