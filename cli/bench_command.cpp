// sluice bench: Sluice beside its rivals on the GPU of this machine.
#include <algorithm>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "bench/chain.hpp"
#include "bench/floor.hpp"
#include "bench/grouped.hpp"
#include "bench/suites.hpp"
#include "gpu.hpp"
#include "planning.hpp"
#include "session.hpp"

namespace sluice::cli {
namespace {

struct BenchFlags {
  BenchOptions options;
  PlannerFlags planner;
  std::string type;
  std::optional<int> gpu;
};

const std::vector<std::string> kRivals = {"cublaslt", "cublaslt-best"};
const std::vector<std::string> kTypes = {"bf16", "e4m3", "int4"};

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

Status check_options(const BenchOptions& options) {
  if (!options.chain.empty())
    if (Status s = bench::check_chain_options(options); !s) return s;
  if (!options.grouped.empty()) {
    if (options.grouped == "all" || !bench::grouped_shapes(options.grouped).empty()) return Nothing{};
    return Error{ErrorCode::not_found, fmt::format("--grouped '{}' describes none of the grouped products; try all", options.grouped)};
  }
  if (!options.floor.empty()) {
    if (const auto sizes = bench::floor_sizes(options.floor); !sizes) return Error{sizes.error().code, "--floor " + sizes.error().message};
    return Nothing{};
  }
  if (Result<std::vector<bench::Shape>> shapes = bench::find_shapes(options.suite, options.seed); !shapes)
    return Error{shapes.error().code, "--suite " + shapes.error().message};
  for (const std::string& rival : options.rivals)
    if (!contains(kRivals, rival))
      return Error{ErrorCode::not_found, fmt::format("--against {} is not known; choose from {}", rival, fmt::join(kRivals, ", "))};
  return Nothing{};
}

Outcome run_benchmark_command(const BenchFlags& flags, const Session& session) {
  BenchOptions options = flags.options;
  options.json = session.json;
  if (options.rivals == std::vector<std::string>{"none"}) options.rivals.clear();
  if (Status s = check_options(options); !s) return s.error();
  if (!flags.type.empty() && !contains(kTypes, flags.type))
    return Error{ErrorCode::not_found, fmt::format("--type {} is not known; choose from {}", flags.type, fmt::join(kTypes, ", "))};
  options.type = parse_data_type(flags.type);
  const Result<PlanOptions> plan_options = to_plan_options(flags.planner);
  if (!plan_options) return plan_options.error();
  options.plan_options = *plan_options;
  if (flags.gpu)
    if (Status s = select_gpu(*flags.gpu); !s) return s.error();
  return run_benchmark(options);
}

}  // namespace

void add_bench_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<BenchFlags>();
  BenchOptions& options = flags->options;
  CLI::App* command =
      add_command<BenchFlags>(app, session, "bench", "Time Sluice beside its rivals on this GPU", flags, &run_benchmark_command);
  command
      ->add_option("--suite", options.suite,
                   fmt::format("{}, or a file of shapes: CSV m,n,k or JSON lines; several are separated by commas",
                               fmt::join(bench::suite_names(), ", ")))
      ->capture_default_str();
  command
      ->add_option("--against", options.rivals,
                   fmt::format("{} (first answer, best of 16), separated by commas, or none", fmt::join(kRivals, ", ")))
      ->delimiter(',');
  command->add_option("--seed", options.seed, "Draws the shapes of the suite random")->capture_default_str();
  command->add_option("--type", flags->type,
                      "Of A and B: bf16, e4m3 with block scales, or int4 for a packed B beside a bf16 A (default: the suite's)");
  command->add_option("--out", options.out, "A JSON file for every number");
  command->add_option("--html", options.html, "Of a suite: a page of plots, each of them beside it as an SVG file");
  command->add_option("--m-min", options.m_min, "Only shapes with at least this many rows");
  command->add_option("--m-max", options.m_max, "Only shapes with at most this many rows");
  command->add_option("--shape", options.shape_filter, "Only shapes with this text in MxNxK");
  command->add_flag("--planner,--all-kernels", options.planner,
                    "Time every candidate of the planner instead of the rivals: how far is its choice from the best?");
  command->add_flag("--constant-b", options.constant_b, "Declare the weights constant, so that launches may fetch them early");
  CLI::Option* chain =
      command->add_option("--chain", options.chain,
                          "Instead of a suite the linear layers of decoding, each fed by the one before: llama3-8b, llama3-70b or all");
  command->add_option("--chain-rows", options.chain_rows, "With --chain: rows, separated by commas (default: 1,16,64)")
      ->delimiter(',')
      ->needs(chain);
  command->add_option("--chain-blocks", options.chain_blocks, "With --chain: blocks in a graph, each with weights of its own")
      ->capture_default_str()
      ->needs(chain);
  CLI::Option* grouped = command->add_option("--grouped", options.grouped,
                                             "Instead of a suite products of groups of rows, with sizes on the device: all, or a text in "
                                             "their set, type or size (contiguous, unpadded, experts, masked, skewed, general, gradients)");
  grouped->excludes(chain);
  CLI::Option* floor = command->add_option(
      "--floor", options.floor,
      "Instead of a suite memory alone: how long reading so many MB takes, numbers separated by commas, or all (1 to 1024)");
  floor->excludes(chain)->excludes(grouped);
  for (const char* flag :
       {"--suite", "--against", "--seed", "--type", "--shape", "--m-min", "--m-max", "--planner", "--constant-b", "--html"})
    floor->excludes(command->get_option(flag));
  for (const char* flag : {"--suite", "--seed", "--type", "--shape", "--m-min", "--m-max", "--constant-b", "--html"})
    grouped->excludes(command->get_option(flag));
  for (const char* flag : {"--suite", "--seed", "--type", "--shape", "--m-min", "--m-max", "--planner", "--constant-b", "--html"})
    chain->excludes(command->get_option(flag));
  command->add_option("--rounds", options.rounds, "Turns of each competitor (default: as many as the seconds allow, 7 at least)");
  command->add_option("--seconds-per-shape", options.seconds_per_shape, "GPU time to aim at")->capture_default_str()->check(above_zero());
  command
      ->add_option(
          "--turn", options.turn_seconds,
          "Suites: seconds that a turn lasts, of which the last third is timed, so that each competitor has the clock that its own "
          "power leaves; 3 rounds unless told otherwise (default: one graph of about 2 ms)")
      ->excludes(chain)
      ->excludes(grouped)
      ->excludes(floor);
  command->add_option(
      "--rest", options.rest_seconds,
      "Seconds for which the GPU is left idle before each product, so that the clock it starts with does not depend on what came "
      "before (default: 1 with --grouped, else 0)");
  command->add_option("--gpu", flags->gpu, "Use this GPU");
  add_planner_flags(*command, flags->planner);
}

}  // namespace sluice::cli
