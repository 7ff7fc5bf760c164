// sluice calibrate: fits the cost model's constants to times measured on the GPU of this machine, or learns from times measured before.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include "bench/calibration_cases.hpp"
#include "bench/recorded_timings.hpp"
#include "gpu.hpp"
#include "planning.hpp"
#include "session.hpp"

namespace sluice::cli {
namespace {

struct CalibrateFlags {
  CalibrationOptions options;
  std::string calibration;
  std::optional<int> gpu;
  std::vector<std::string> timings;
  int folds = 0;
  std::string device;
};

// From times that were measured before, without a GPU: the constants stay, and what they miss is learnt.
Outcome learn(const CalibrateFlags& flags, const Session& session, const Calibration& start) {
  const Result<ChosenDevice> device = choose_device(flags.device);
  if (!device) return device.error();
  bench::CalibrationTimings measured;
  for (const std::string& path : flags.timings) {
    const Result<std::string> text = read_text_file(path);
    if (!text) return text.error();
    if (Status s = bench::add_recorded(*text, device->spec, measured); !s) return Error{s.error().code, path + " " + s.error().message};
  }
  if (measured.timings.empty())
    return Error{ErrorCode::invalid_argument, "--timings: no time in these files is of a candidate that the planner has today"};
  Calibration unlearnt = start;
  unlearnt.learnt.clear();
  Calibration learnt = learn_comparisons(measured.timings, device->spec, start);
  if (!flags.options.out.empty())
    if (Status s = write_text_file(flags.options.out, to_json(learnt)); !s) return s.error();
  if (session.json) {
    fmt::print("{}", to_json(learnt));
    return 0;
  }
  fmt::print("{}", bench::calibration_report(measured, device->spec, unlearnt, learnt));
  if (flags.folds > 1) {
    const bench::LeftOut out = bench::judge_left_out(measured, device->spec, unlearnt, flags.folds);
    fmt::print("of {} products left out of learning, one in {} at a time: {:.4f} before, {:.4f} after\n", out.products, flags.folds,
               out.before, out.after);
  }
  if (!flags.options.out.empty()) fmt::print("wrote {}\n", flags.options.out);
  return 0;
}

Outcome calibrate(const CalibrateFlags& flags, const Session& session) {
  CalibrationOptions options = flags.options;
  options.json = session.json;
  if (const auto cases = bench::calibration_cases(options.suites, options.seed); !cases)
    return Error{cases.error().code, "--suites " + cases.error().message};
  if (Status s = check_folder_of(options.out); !s) return s.error();  // before the GPU works for minutes, not after
  Result<std::shared_ptr<const Calibration>> start = read_calibration(flags.calibration);
  if (!start) return start.error();
  options.start = std::move(*start);
  if (!flags.timings.empty()) return learn(flags, session, options.start ? *options.start : built_in_calibration());
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
  CLI::Option* const gpu = command->add_option("--gpu", flags->gpu, "Use this GPU");
  CLI::Option* const timings =
      command
          ->add_option("--timings", flags->timings,
                       "Needs no GPU: learn from files of `sluice bench --planner --out`, separated by commas; the constants stay")
          ->delimiter(',')
          ->excludes(gpu);
  command->add_option("--folds", flags->folds, "With --timings: also judge products left out of learning, one in so many at a time")
      ->needs(timings)
      ->check(CLI::Range(2, 100));
  add_device_flag(*command, flags->device);
}

}  // namespace sluice::cli
