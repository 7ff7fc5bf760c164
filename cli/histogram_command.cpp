// sluice histogram: how often each value occurs in an .npy file.
#include <chrono>
#include <cstdlib>

#include <fmt/core.h>

#include "choices.hpp"
#include "gemm_place.hpp"
#include "gpu.hpp"
#include "npy.hpp"
#include "session.hpp"
#include "sluice/histogram.hpp"

namespace sluice::cli {
namespace {

struct HistogramFlags {
  std::string samples, out;
  std::int64_t bins = 256, first = 0;
  std::optional<float> lower, upper;
  std::string counts;
  bool clamp = false, check = false, explain = false;
  PlaceFlags place;
};

Error wrong(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }

Result<HistogramProblem> problem_of(const HistogramFlags& flags, const NpySamples& samples) {
  const bool floats = samples.type == HistogramSample::float32;
  if (floats && flags.first != 0) return wrong("--first is for integers; pass --lower and --upper");
  if (!floats && (flags.lower || flags.upper)) return wrong("--lower and --upper are for float32; pass --first, a bin has one integer");
  if (floats && !(flags.lower && flags.upper)) return wrong("float32 samples need the range of their bins; pass --lower and --upper");
  HistogramProblem p{.n = samples.count, .bins = flags.bins, .sample = samples.type, .first = flags.first};
  if (floats) p.lower = *flags.lower, p.upper = *flags.upper;
  if (flags.clamp) p.outside = OutsideValues::clamped;
  constexpr std::int64_t kMostOfInt32 = 2147483647;
  if (p.n > kMostOfInt32) p.count_type = CountType::int64;
  if (Status s = choose_into(p.count_type, "--counts", flags.counts, &parse_count_type, "int32, int64"); !s) return s.error();
  return validate(p);
}

Status count_there(const HistogramProblem& p, const HistogramArguments& arguments, Backend backend, const WantedPlace& wanted) {
  switch (backend) {
    case Backend::cuda:
      return histogram_on_gpu(p, arguments);
    case Backend::emulator:
      return histogram_on_emulator(p, arguments, wanted.emulator);
    case Backend::reference:
      break;
  }
  return histogram_on_cpu(p, arguments, wanted.threads);
}

// Rubbish at first: a count that nobody writes shows.
std::vector<std::byte> fresh_counts(const HistogramProblem& p) {
  return std::vector<std::byte>(static_cast<std::size_t>(p.bins) * static_cast<std::size_t>(size_bytes(p.count_type)), std::byte{0xcd});
}

std::int64_t sum_of(const HistogramProblem& p, const std::vector<std::byte>& counts) {
  std::int64_t sum = 0;
  for (std::size_t bin = 0; bin < static_cast<std::size_t>(p.bins); ++bin)
    sum += p.count_type == CountType::int64 ? reinterpret_cast<const std::int64_t*>(counts.data())[bin]
                                            : reinterpret_cast<const std::int32_t*>(counts.data())[bin];
  return sum;
}

Outcome count_file(const HistogramFlags& flags, const Session& session) {
  if (flags.out.empty() && !flags.check && !flags.explain) return wrong("the result has nowhere to go; pass -o COUNTS.npy, or --check");
  if (Status s = check_folder_of(flags.out); !s) return s.error();
  const Result<WantedPlace> wanted = read_place(flags.place);
  if (!wanted) return wanted.error();
  const Result<NpySamples> samples = read_npy_samples(flags.samples);
  if (!samples) return samples.error();
  const Result<HistogramProblem> problem = problem_of(flags, *samples);
  if (!problem) return problem.error();
  const Place place = choose_place(flags.place, *wanted, gpu_or_reference);

  std::vector<std::byte> counts = fresh_counts(*problem);
  const auto begin = std::chrono::steady_clock::now();
  if (Status s = count_there(*problem, {.samples = samples->data.data(), .counts = counts.data()}, place.backend, *wanted); !s)
    return s.error();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!flags.out.empty())
    if (Status s = write_npy_counts(flags.out, problem->count_type, counts); !s) return s.error();

  const std::int64_t counted = sum_of(*problem, counts);
  Json json = {{"problem", describe(*problem)},
               {"samples", problem->n},
               {"counted", counted},
               {"backend", sluice::to_string(place.backend)},
               {"why", place.why},
               {"where", place.text},
               {"seconds", seconds}};
  std::vector<std::string> lines = {describe(*problem), fmt::format("ran  {} ({})", place.text, place.why),
                                    fmt::format("{} of {} samples have a bin", counted, problem->n)};
  if (!flags.out.empty()) {
    lines.push_back("wrote " + flags.out);
    json["output"] = flags.out;
  }
  if (flags.explain) {
    const Result<HistogramPlan> plan = plan_histogram(*problem, *find_device("h200"));
    if (!plan) return plan.error();
    lines.push_back("on an h200: " + explain(*plan));
    json["plan"] = {{"device", "h200"}, {"way", describe(plan->way)}, {"predicted_us", plan->predicted_us}};
  }
  int exit_code = 0;
  if (flags.check) {
    std::vector<std::byte> expected = fresh_counts(*problem);
    if (Status s = histogram_on_cpu(*problem, {.samples = samples->data.data(), .counts = expected.data()}); !s) return s.error();
    const bool same = counts == expected;
    json["right"] = same;
    if (same) lines.push_back(fmt::format("{} counts checked: all as the reference has them", problem->bins));
    if (!same) {
      fmt::print(stderr, "sluice: the result is wrong: counts differ from the reference\n");
      exit_code = kExitFailure;
    }
  }
  print_answer(session, json, lines);
  return exit_code;
}

}  // namespace

void add_histogram_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<HistogramFlags>();
  CLI::App* command =
      add_command<HistogramFlags>(app, session, "histogram", "Count how often each value occurs in a .npy file", flags, &count_file);
  command->add_option("SAMPLES", flags->samples, "int32, uint8 or float32, of any shape")->required();
  command->add_option("--bins", flags->bins, "2 to 1048576")->capture_default_str();
  command->add_option("--first", flags->first, "Of integers: the value of the first bin; each bin has one value")->capture_default_str();
  command->add_option("--lower", flags->lower, "Of float32: where the first bin begins");
  command->add_option("--upper", flags->upper, "Of float32: where the last bin ends");
  command->add_flag("--clamp", flags->clamp, "Count values outside in the first or the last bin, instead of not at all");
  command->add_option("--counts", flags->counts, "Of the result: int32 or int64 (default: int32, if that holds the number of samples)");
  command->add_option("-o,--output", flags->out, "Where the counts go, one for each bin");
  command->add_flag("--check,--verify", flags->check, "Compare with what the reference counts");
  command->add_flag("--explain", flags->explain, "Say how an H200 counts them, and why");
  add_place_flags(*command, flags->place);
}

}  // namespace sluice::cli
