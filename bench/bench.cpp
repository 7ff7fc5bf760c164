#include "bench/bench.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include <fmt/format.h>

#include "bench/chain.hpp"
#include "bench/chain_measurement.hpp"
#include "bench/console.hpp"
#include "bench/environment.hpp"
#include "bench/floor.hpp"
#include "bench/floor_measurement.hpp"
#include "bench/grouped.hpp"
#include "bench/grouped_measurement.hpp"
#include "bench/measurement.hpp"
#include "bench/report_page.hpp"
#include "bench/tuning.hpp"

namespace sluice {
namespace bench {
namespace {

constexpr double kLongestTurnSeconds = 60;

Error cannot(const std::string& message) { return {ErrorCode::invalid_argument, message}; }

Result<std::vector<Shape>> shapes_for(const BenchOptions& options) {
  Result<std::vector<Shape>> found = find_shapes(options.suite, options.seed);
  if (!found) return found;
  std::vector<Shape> shapes = filter_shapes(std::move(*found), options);
  if (shapes.empty()) return cannot("the filter leaves no shape of suite " + options.suite + "; widen the range of m or the text");
  return shapes;
}

Status check_options(const BenchOptions& options) {
  for (const std::string& rival : options.rivals)
    if (rival != "cublaslt" && rival != "cublaslt-best")
      return cannot("no rival is called '" + rival + "'; known are cublaslt and cublaslt-best");
  if (options.type && *options.type != DataType::bf16 && *options.type != DataType::e4m3 && *options.type != DataType::int4)
    return cannot(fmt::format("type = {}; suites are measured in bf16, e4m3 and int4", to_string(*options.type)));
  if (options.rounds < 0) return cannot(fmt::format("rounds = {} is negative; 0 chooses", options.rounds));
  if (!options.chain.empty())
    if (Status s = check_chain_options(options); !s) return s;
  if (options.rest_seconds && !(*options.rest_seconds >= 0))
    return cannot(fmt::format("rest_seconds = {} must be 0 or more", *options.rest_seconds));
  if (!(options.turn_seconds >= 0 && options.turn_seconds <= kLongestTurnSeconds))
    return cannot(fmt::format("turn_seconds = {} must be from 0 to {}", options.turn_seconds, kLongestTurnSeconds));
  if (!(options.seconds_per_shape > 0)) return cannot(fmt::format("seconds_per_shape = {} must be above 0", options.seconds_per_shape));
  return Nothing{};
}

bool any_wrong(const BenchReport& report) {
  return std::any_of(report.results.begin(), report.results.end(), [](const ShapeResult& r) {
    return !r.wrong.empty() || std::any_of(r.kernels.begin(), r.kernels.end(), [](const KernelTiming& k) { return !k.wrong.empty(); });
  });
}

// What has been measured so far, for whoever ends a long run before it ends by itself. That it cannot be written the end will say.
class InterimReport {
 public:
  explicit InterimReport(const std::string& path) : path_(path) {}
  void keep(const BenchReport& report) {
    if (path_.empty() || Clock::now() - written_ < kBetween) return;
    (void)write_file(path_, to_json(report));
    written_ = Clock::now();
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kBetween{10};

  const std::string& path_;
  Clock::time_point written_ = Clock::now();
};

// Everything that was measured before has been waited for.
void rest(const BenchOptions& options, double otherwise = 0) {
  std::this_thread::sleep_for(std::chrono::duration<double>(options.rest_seconds.value_or(otherwise)));
}

// The GPU breaks on the way: what was measured so far is still reported, and `broken` says why it ends there.
void measure_all(const BenchOptions& options, Measurement& measurement, const std::vector<Shape>& shapes, BenchReport& report,
                 std::string& broken) {
  if (!options.json) fmt::print("{}", table_header(report));
  InterimReport interim(options.out);
  for (std::size_t i = 0; i < shapes.size() && broken.empty(); ++i) {
    show_progress(i, shapes.size(), to_string(shapes[i]));
    rest(options);
    try {
      report.results.push_back(measurement.measure(shapes[i]));
    } catch (const DeviceFailure& failure) {
      broken = failure.what();
      report.results.push_back({.shape = shapes[i], .wrong = broken});
    }
    end_progress();
    if (!options.json) fmt::print("{}", table_row(report.results.back(), options.planner));
    std::fflush(stdout);
    interim.keep(report);
  }
}

bool any_wrong(const FloorReport&) { return false; }  // nothing is computed

// The same for a suite and for chains: the report goes to stdout and to a file, and the exit code says whether all was right.
template <class Report>
Result<int> finish(const BenchOptions& options, const Report& report, const std::string& broken) {
  fmt::print("{}", options.json ? to_json(report) : table_footer(report));
  if (!options.out.empty())
    if (Status s = write_file(options.out, to_json(report)); !s) return s.error();
  if (!broken.empty()) fmt::print(stderr, "the benchmark ended early: {}\n", broken);
  return any_wrong(report) ? kWrong : kRight;
}

Environment environment_with(const std::shared_ptr<const CublasLt>& cublaslt) {
  Environment environment = current_environment();
  if (cublaslt) environment.cublaslt = cublaslt->version();
  return environment;
}

// What cannot be tuned is said and left out: the planner goes on choosing for it.
Status write_plans(const BenchOptions& options, const BenchReport& report, const DeviceSpec& device) {
  std::vector<TunedPlan> plans;
  for (const ShapeResult& result : report.results) {
    Result<TunedPlan> tuned = tuned_plan(result, problem_of(result.shape, options), device);
    if (tuned)
      plans.push_back(std::move(*tuned));
    else
      fmt::print(stderr, "left out: {}\n", tuned.error().message);
  }
  if (plans.empty()) return Error{ErrorCode::internal, "no shape could be tuned, so " + options.plans + " is not written"};
  if (Status s = write_file(options.plans, to_json(plans)); !s) return s;
  fmt::print(stderr, "wrote {} plans to {}\n", plans.size(), options.plans);
  return Nothing{};
}

// The page, and its plots one by one: report.html and report-ratio.svg.
Status write_page(const BenchOptions& options, const BenchReport& report, const DeviceSpec& device) {
  if (Status s = write_file(options.html, report_page(report, device)); !s) return s;
  const std::string stem = options.html.ends_with(".html") ? options.html.substr(0, options.html.size() - 5) : options.html;
  for (const auto& [name, svg] : report_plots(report, device))
    if (Status s = write_file(stem + "-" + name + ".svg", svg); !s) return s;
  return Nothing{};
}

Result<int> run_suite(const BenchOptions& options, const DeviceSpec& device, const std::shared_ptr<const CublasLt>& cublaslt) {
  Result<std::vector<Shape>> shapes = shapes_for(options);
  if (!shapes) return shapes.error();
  BenchReport report{.environment = environment_with(cublaslt),
                     .planner = options.planner,
                     .constant_b = options.constant_b,
                     .turn_seconds = options.turn_seconds};
  if (!options.planner) report.rivals = options.rivals;
  report.floor = !options.planner && std::any_of(shapes->begin(), shapes->end(), has_w4);
  std::string broken;
  {
    Measurement measurement(options, *shapes, device, cublaslt);
    measure_all(options, measurement, *shapes, report, broken);
    if (broken.empty()) report.environment.after = gpu_state();
  }
  if (!options.plans.empty())
    if (Status s = write_plans(options, report, device); !s) return s.error();
  if (!options.html.empty())
    if (Status s = write_page(options, report, device); !s) return s.error();
  return finish(options, report, broken);
}

// One model after another: their weights need not fit beside each other.
Result<int> run_chains(const BenchOptions& options, const DeviceSpec& device, const std::shared_ptr<const CublasLt>& cublaslt) {
  const Result<std::vector<ChainModel>> models = find_chains(options.chain);
  if (!models) return models.error();
  ChainReport report{.environment = environment_with(cublaslt)};
  std::string broken;
  if (!options.json) fmt::print("{}", table_header(report));
  const auto show_row = [&](const ChainReport& so_far) {
    end_progress();
    if (!options.json) fmt::print("{}", table_row(so_far.results.back()));
    std::fflush(stdout);
  };
  const std::size_t all = models->size() * options.chain_rows.size();
  for (const ChainModel& model : *models) {
    if (!broken.empty()) break;
    try {
      ChainMeasurement measurement(options, model, device, cublaslt);
      for (const std::int64_t rows : options.chain_rows) {
        show_progress(report.results.size(), all, fmt::format("{}, {} rows", model.name, rows));
        rest(options);
        report.results.push_back(measurement.measure(rows));
        show_row(report);
      }
    } catch (const DeviceFailure& failure) {
      if (report.results.empty()) throw;  // too little memory, perhaps: nothing to report
      broken = failure.what();
      report.results.push_back({.model = model.name, .blocks = options.chain_blocks, .wrong = broken});
      show_row(report);
    }
  }
  if (broken.empty()) report.environment.after = gpu_state();
  return finish(options, report, broken);
}

// Groups in FP8 are what comes closest to the power limit.
constexpr double kRestBeforeGroups = 1;

Result<int> run_grouped(const BenchOptions& options, const DeviceSpec& device) {
  const std::vector<GroupedShape> shapes = grouped_shapes(options.grouped == "all" ? "" : options.grouped);
  if (shapes.empty()) return Error{ErrorCode::not_found, "no grouped product is described by '" + options.grouped + "'; try all"};
  GroupedReport report{.environment = environment_with(nullptr)};
  if (!options.json) fmt::print("{}", table_header(report));
  std::string broken;
  try {
    GroupedMeasurement measurement(options, shapes, device);
    for (const GroupedShape& shape : shapes) {
      show_progress(report.results.size(), shapes.size(), to_string(shape));
      rest(options, kRestBeforeGroups);
      report.results.push_back(measurement.measure(shape));
      end_progress();
      if (!options.json) fmt::print("{}", table_row(report.results.back()));
      std::fflush(stdout);
    }
    report.environment.after = gpu_state();
  } catch (const DeviceFailure& failure) {
    if (report.results.empty()) throw;  // too little memory, perhaps: nothing to report
    broken = failure.what();
    end_progress();
  }
  const Result<int> finished = finish(options, report, broken);
  return !finished || broken.empty() ? finished : Result<int>(kWrong);
}

Result<int> run_floor(const BenchOptions& options, const DeviceSpec& device) {
  const Result<std::vector<std::size_t>> sizes = floor_sizes(options.floor);
  if (!sizes) return sizes.error();
  FloorReport report{.environment = environment_with(nullptr)};
  if (!options.json) fmt::print("{}", table_header(report));
  FloorMeasurement measurement(options, *sizes, device);
  for (const std::size_t bytes : *sizes) {
    rest(options);
    report.results.push_back(measurement.measure(bytes));
    if (!options.json) fmt::print("{}", table_row(report.results.back()));
    std::fflush(stdout);
  }
  report.environment.after = gpu_state();
  return finish(options, report, "");
}

Result<int> run_checked(const BenchOptions& options) {
  if (Status s = check_options(options); !s) return s.error();
  Result<DeviceSpec> device = current_device();
  if (!device) return device.error();
  if (!options.grouped.empty()) return run_grouped(options, *device);
  if (!options.floor.empty()) return run_floor(options, *device);
  Result<std::shared_ptr<const CublasLt>> found = CublasLt::load();
  const bool needed = !options.rivals.empty() && !options.planner;
  if (!found && needed) return found.error();
  if (!found) say_cublaslt_is_missing(found.error());
  const std::shared_ptr<const CublasLt> cublaslt = found ? *found : nullptr;
  return options.chain.empty() ? run_suite(options, *device, cublaslt) : run_chains(options, *device, cublaslt);
}

}  // namespace
}  // namespace bench

int run_bench(const BenchOptions& options) {
  return bench::run_reported("bench", options.json, [&] { return bench::run_checked(options); });
}

}  // namespace sluice
