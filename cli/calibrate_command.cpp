// sluice calibrate: fits the cost model's constants to times measured on the GPU of this machine.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "bench/calibration_cases.hpp"
#include "gpu.hpp"
#include "planning.hpp"
#include "session.hpp"

namespace sluice::cli {
namespace {

struct CalibrateFlags {
  CalibrationOptions options;
  std::string calibration;
  std::optional<int> gpu;
};

Outcome calibrate(const CalibrateFlags& flags, const Session& session) {
  CalibrationOptions options = flags.options;
  options.json = session.json;
  if (const auto cases = bench::calibration_cases(options.suites, options.seed); !cases)
    return Error{cases.error().code, "--suites " + cases.error().message};
  if (Status s = check_folder_of(options.out); !s) return s.error();  // before the GPU works for minutes, not after
  Result<std::shared_ptr<const Calibration>> start = read_calibration(flags.calibration);
  if (!start) return start.error();
  options.start = std::move(*start);
  if (flags.gpu)
    if (Status s = select_gpu(*flags.gpu); !s) return s.error();
  return run_calibrate(options);
}

}  // namespace

void add_calibrate_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<CalibrateFlags>();
  CalibrationOptions& options = flags->options;
  CLI::App* command = add_command<CalibrateFlags>(app, session, "calibrate",
                                                  "Time candidates on this GPU and fit the planner's constants to them, for --calibration",
                                                  flags, &calibrate);
  command->add_option("-o,--output", options.out, "Where the constants go");
  command->add_option("--minutes", options.minutes, "No shape is begun later")->capture_default_str()->check(above_zero());
  command->add_option("--suites", options.suites,
                      fmt::format("Shapes: {}, or files of them, separated by commas (default: about seventy of all kinds)",
                                  fmt::join(bench::suite_names(), ", ")));
  command->add_option("--seed", options.seed, "Draws the shapes of the suite random")->capture_default_str();
  command->add_option("--calibration", flags->calibration, "Begin with the constants in this file, not the built-in ones");
  command->add_option("--gpu", flags->gpu, "Use this GPU");
}

}  // namespace sluice::cli
