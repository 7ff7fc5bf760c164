#include "bench/calibration.hpp"

#include <chrono>
#include <cstdio>

#include <fmt/format.h>

#include "bench/calibration_cases.hpp"
#include "bench/console.hpp"
#include "bench/environment.hpp"
#include "bench/measurement.hpp"

namespace sluice {
namespace bench {
namespace {

// Those predicted to be further behind are hardly ever the fastest, and their times would count for nothing in the fit.
constexpr double kKernelsWithin = 1.7;

// Stops when the minutes are used, or when the GPU breaks: then `broken` says why.
void measure_cases(const std::vector<CalibrationCase>& cases, double minutes, Measurement& measurement, CalibrationTimings& measured,
                   std::string& broken) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double, std::ratio<60>>(minutes);
  for (std::size_t i = 0; i < cases.size() && broken.empty() && Clock::now() < end; ++i) {
    show_progress(i, cases.size(), to_string(cases[i]));
    try {
      measured.add(cases[i], measurement.measure(cases[i].shape, problem_of(cases[i])));
    } catch (const DeviceFailure& failure) {
      broken = failure.what();
    }
  }
  end_progress();
}

Calibration fitted_here(const CalibrationTimings& measured, const DeviceSpec& device, const Calibration& start,
                        const Environment& environment) {
  Calibration fitted = learn_comparisons(measured.timings, device, fit_calibration(measured.timings, device, start));
  fitted.provenance.device = fmt::format("{}, {} SMs", environment.gpu, environment.sm_count);
  fitted.provenance.date = environment.date;
  fitted.provenance.driver = environment.driver;
  fitted.provenance.commit = environment.commit;
  fitted.provenance.remarks = fmt::format("`sluice calibrate`, CUDA {}", environment.cuda);
  return fitted;
}

Result<int> calibrate(const CalibrationOptions& options) {
  if (!(options.minutes > 0)) return Error{ErrorCode::invalid_argument, fmt::format("minutes = {} must be above 0", options.minutes)};
  const Result<std::vector<CalibrationCase>> cases = calibration_cases(options.suites, options.seed);
  if (!cases) return cases.error();
  const Result<DeviceSpec> device = current_device();
  if (!device) return device.error();
  const Result<std::shared_ptr<const CublasLt>> cublaslt = CublasLt::load();
  if (!cublaslt) say_cublaslt_is_missing(cublaslt.error());

  const Calibration& start = options.start ? *options.start : built_in_calibration();
  BenchOptions bench;
  bench.rivals.clear();
  bench.planner = true;
  bench.kernels_within = kKernelsWithin;
  bench.plan_options.calibration = options.start;
  std::vector<Shape> shapes;
  for (const CalibrationCase& one : *cases) shapes.push_back(one.shape);

  const Environment environment = current_environment();
  CalibrationTimings measured;
  std::string broken;
  {
    Measurement measurement(bench, shapes, *device, cublaslt ? *cublaslt : nullptr);
    measure_cases(*cases, options.minutes, measurement, measured, broken);
  }
  for (const std::string& wrong : measured.wrong) fmt::print(stderr, "WRONG {}\n", wrong);
  if (!broken.empty()) return Error{ErrorCode::cuda, broken};  // what was timed before it broke is not to be trusted either
  if (measured.timings.empty()) return Error{ErrorCode::internal, "no candidate could be timed, so there is nothing to fit"};

  const Calibration fitted = fitted_here(measured, *device, start, environment);
  if (!options.out.empty())
    if (Status s = write_file(options.out, to_json(fitted)); !s)
      return Error{s.error().code, "cannot write " + options.out + "; choose another place with -o"};
  if (options.json) {
    fmt::print("{}", to_json(fitted));
  } else {
    fmt::print("{}: {} of {} cases\n{}", fitted.provenance.device, measured.cases.size(), cases->size(),
               calibration_report(measured, *device, start, fitted));
    fmt::print("{}\n", options.out.empty() ? "not kept: -o FILE writes the calibration" : "wrote " + options.out);
  }
  return measured.wrong.empty() ? kRight : kWrong;
}

}  // namespace
}  // namespace bench

int run_calibration(const CalibrationOptions& options) {
  return bench::run_reported("calibrate", options.json, [&] { return bench::calibrate(options); });
}

}  // namespace sluice
