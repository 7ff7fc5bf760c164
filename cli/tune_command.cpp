// sluice tune: times every candidate for each shape on the GPU of this machine, and keeps the fastest plans in a file.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "bench/suites.hpp"
#include "gpu.hpp"
#include "planning.hpp"
#include "session.hpp"

namespace sluice::cli {
namespace {

struct TuneFlags {
  BenchOptions options;
  std::string calibration;
  std::optional<int> gpu;
};

constexpr int kRounds = 9;  // more than `bench --planner` takes: what is measured here is kept
constexpr double kTurnSeconds = 0.1;

Status check_options(const BenchOptions& options) {
  if (Result<std::vector<bench::Shape>> shapes = bench::find_shapes(options.suite, options.seed); !shapes)
    return Error{shapes.error().code, "--shapes " + shapes.error().message};
  return check_folder_of(options.plans);  // before the GPU works for minutes, not after
}

Outcome tune(const TuneFlags& flags, const Session& session) {
  BenchOptions options = flags.options;
  options.json = session.json;
  options.planner = true;
  options.rivals.clear();
  if (Status s = check_options(options); !s) return s.error();
  Result<std::shared_ptr<const Calibration>> calibration = read_calibration(flags.calibration);
  if (!calibration) return calibration.error();
  options.plan_options.calibration = std::move(*calibration);
  if (flags.gpu)
    if (Status s = select_gpu(*flags.gpu); !s) return s.error();
  return run_benchmark(options);
}

}  // namespace

void add_tune_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<TuneFlags>();
  BenchOptions& options = flags->options;
  options.rounds = kRounds;
  options.turn_seconds = kTurnSeconds;
  CLI::App* command = add_command<TuneFlags>(
      app, session, "tune", "Time every candidate for each shape on this GPU, and keep the fastest plans in a file for --plans", flags,
      &tune);
  command
      ->add_option("--shapes", options.suite,
                   fmt::format("A file of shapes (CSV m,n,k or JSON lines), or {}; several are separated by commas",
                               fmt::join(bench::suite_names(), ", ")))
      ->required();
  command->add_option("-o,--output", options.plans, "Where the plans go")->required();
  command->add_flag("--constant-b", options.constant_b, "For products whose B, the weights, is declared constant");
  command->add_option("--seed", options.seed, "Draws the shapes of the suite random")->capture_default_str();
  command->add_option("--m-min", options.m_min, "Only shapes with at least this many rows");
  command->add_option("--m-max", options.m_max, "Only shapes with at most this many rows");
  command->add_option("--shape", options.shape_filter, "Only shapes with this text in MxNxK");
  command->add_option("--rounds", options.rounds, "Turns of each candidate")->capture_default_str()->check(above_zero());
  command
      ->add_option("--turn", options.turn_seconds,
                   "Seconds that each of the last three turns of the ten best lasts, so that each has the clock that its own power leaves; "
                   "0: some milliseconds")
      ->capture_default_str();
  command->add_option("--out", options.out, "A JSON file for every time that was measured");
  add_calibration_flag(*command, flags->calibration);
  command->add_option("--gpu", flags->gpu, "Use this GPU");
}

}  // namespace sluice::cli
