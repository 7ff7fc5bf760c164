// sluice gemm: multiply matrices that lie in .npy files.
#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/core.h>

#include "choices.hpp"
#include "fp8_result.hpp"
#include "gemm_inputs.hpp"
#include "gemm_place.hpp"
#include "npy.hpp"
#include "plan_file.hpp"
#include "session.hpp"
#include "sluice/verify.hpp"

namespace sluice::cli {
namespace {

struct GemmFlags {
  GemmFiles files;
  PlannerFlags planner;
  PlaceFlags place;
  std::string device;  // to plan for
  std::string out, plan_file, plans, check, check_file;
};

// Beyond this many multiply-adds --check takes samples unless told otherwise: the reference does about 10^9 a second and core.
constexpr double kMostCheckedWholly = 8e9;
constexpr std::int64_t kSamples = 16384;

// Elements to check, 0 for all; nothing if no check was asked for.
Result<std::optional<std::int64_t>> samples_to_check(const GemmFlags& flags, const GemmInputs& inputs) {
  using Samples = std::optional<std::int64_t>;
  if (flags.check.empty() && flags.check_file.empty()) return Samples{};
  if (flags.check.empty() || flags.check == "auto") return Samples{needed_flops(inputs) / 2 <= kMostCheckedWholly ? 0 : kSamples};
  if (flags.check == "all") return Samples{0};
  std::int64_t samples = 0;
  const char* end = flags.check.data() + flags.check.size();
  const auto [stop, problem] = std::from_chars(flags.check.data(), end, samples);
  if (problem == std::errc{} && stop == end && samples > 0) return Samples{samples};
  return Error{ErrorCode::invalid_argument,
               fmt::format("--check={} must be a positive number of elements to check, or 'all'", flags.check)};
}

// A plan from a file must be for this very product, up to what it was promised about pointers (ours are aligned to 16 bytes) and told about
// rows.
Result<Plan> read_plan(const std::string& path, const GemmProblem& wanted) {
  const Result<std::string> text = read_text_file(path);
  if (!text) return text.error();
  Result<Plan> read = plan_from_json(*text);
  if (!read) return Error{read.error().code, path + ": " + read.error().message};
  GemmProblem planned = read->problem;
  planned.alignment_a_bytes = wanted.alignment_a_bytes;
  planned.alignment_b_bytes = wanted.alignment_b_bytes;
  planned.alignment_d_bytes = wanted.alignment_d_bytes;
  planned.expected_rows = wanted.expected_rows;  // guesses, not the product's
  planned.most_rows = wanted.most_rows;
  if (planned == wanted) return read;
  std::string difference = fmt::format("it is for {}, the files make {}", describe(planned), describe(wanted));
  if (describe(planned) == describe(wanted))
    difference = "its leading dimensions, batch strides, alpha or beta differ from those of the files and flags";
  return Error{ErrorCode::invalid_argument, fmt::format("{}: the plan does not fit: {}", path, difference)};
}

struct ChosenPlan {
  Plan plan;
  std::string whence;
};

// From --plan-file, from --plans, or from the planner.
Result<ChosenPlan> choose_plan(const GemmFlags& flags, const GemmProblem& problem) {
  if (!flags.plan_file.empty()) {
    Result<Plan> read = read_plan(flags.plan_file, problem);
    if (!read) return read.error();
    return ChosenPlan{std::move(*read), "from " + flags.plan_file};
  }
  const Result<ChosenDevice> device = choose_device(flags.device);
  if (!device) return device.error();
  if (!flags.plans.empty()) {
    Result<PlanFromFile> found = plan_from_file(flags.plans, problem, device->spec);
    if (!found) return found.error();
    return ChosenPlan{std::move(found->plan), device->why + "; " + found->why};
  }
  Result<PlanOptions> options = to_plan_options(flags.planner);
  if (!options) return options.error();
  options->keep_candidates = false;
  Result<Plan> made = plan(problem, device->spec, *options);
  if (!made) return made.error();
  return ChosenPlan{std::move(*made), device->why};
}

Status check_output_path(const GemmFlags& flags) {
  if (!flags.check_file.empty()) {
    if (flags.out.empty()) return Nothing{};
    return Error{ErrorCode::invalid_argument, "--check-file computes nothing, so -o has nothing to write; leave one of them out"};
  }
  if (flags.out.empty()) {
    if (!flags.check.empty()) return Nothing{};
    return Error{ErrorCode::invalid_argument, "the result has nowhere to go; pass -o D.npy, or --check to only verify it"};
  }
  return check_folder_of(flags.out);
}

std::string duration_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.2f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.2f} ms", seconds * 1e3);
  return fmt::format("{:.2f} s", seconds);
}

// A non-finite number has no place in JSON.
Json number(double value) { return std::isfinite(value) ? Json(value) : Json(fmt::format("{}", value)); }

Json to_entry(const VerifyReport& report) {
  Json entry = {{"ok", report.ok()},
                {"checked", report.checked},
                {"wrong", report.wrong},
                {"not_a_number", report.not_a_number},
                {"worst_ratio", number(report.worst_ratio)}};
  if (report.worst_row >= 0)
    entry["worst"] = {{"row", report.worst_row},
                      {"column", report.worst_column},
                      {"batch", report.worst_batch},
                      {"got", number(report.worst_got)},
                      {"reference", number(report.worst_reference)}};
  return entry;
}

// What is said of a run, line by line and as JSON at once.
struct Answer {
  Json json = Json::object();
  bool as_json = false;

  void say(const std::string& line) const {
    if (!as_json) fmt::print("{}\n", line);
  }
};

void say_inputs(const GemmInputs& inputs, Answer& answer) {
  for (const std::string& line : inputs.lines) answer.say(line);
  for (const std::string& warning : inputs.warnings) fmt::print(stderr, "sluice: warning: {}\n", warning);
  answer.say(fmt::format("D    {}", describe(inputs.problem)));
  answer.json["problem"] = describe(inputs.problem);
  answer.json["shape"] = inputs.shape_d;
  answer.json["type"] = sluice::to_string(inputs.problem.type_d);
  answer.json["inputs"] = inputs.lines;
  answer.json["warnings"] = inputs.warnings;
}

void say_plan(const Plan& plan, const std::string& whence, Answer& answer) {
  const bool computes = plan.grid_ctas > 0;
  answer.say(fmt::format("plan {}, made for {}, {}", computes ? name(plan.kernel) : "nothing to compute", plan.device.name, whence));
  answer.json["device"] = plan.device.name;
  answer.json["kernel"] = computes ? Json(name(plan.kernel)) : Json(nullptr);
}

void say_run(const Plan& plan, const GemmInputs& inputs, const Place& place, const WantedPlace& wanted, const GemmRun& run,
             Answer& answer) {
  const double tflops = run.seconds > 0 ? needed_flops(inputs) / run.seconds / 1e12 : 0;
  std::string line = fmt::format("ran  {} ({}): {}", place.text, place.why, duration_text(run.seconds));
  if (place.backend == Backend::cuda)
    line += fmt::format(", {:.1f} TFLOP/s (mean of {} launches; predicted {:.2f} us)", tflops, run.launches, plan.predicted.total_us);
  else
    line += fmt::format(", {:.2f} GFLOP/s", 1e3 * tflops);
  answer.say(line);
  answer.json["backend"] = sluice::to_string(place.backend);
  answer.json["why"] = place.why;
  answer.json["where"] = place.text;
  if (place.backend == Backend::emulator)
    answer.json["emulator"] = {{"seed", wanted.emulator.seed},
                               {"asynchrony", sluice::to_string(wanted.emulator.asynchrony)},
                               {"resident_clusters", wanted.emulator.resident_clusters}};
  answer.json["seconds"] = run.seconds;
  answer.json["tflops"] = tflops;
  answer.json["plan"] = parse_json(to_json(plan));
}

Result<GemmResult> compute(const GemmFlags& flags, const GemmInputs& inputs, Answer& answer) {
  const Result<WantedPlace> wanted = read_place(flags.place);
  if (!wanted) return wanted.error();
  const Result<ChosenPlan> chosen = choose_plan(flags, inputs.problem);
  if (!chosen) return chosen.error();
  say_plan(chosen->plan, chosen->whence, answer);
  const Place place = choose_place(flags.place, *wanted, [&] { return automatic_backend(chosen->plan); });
  Result<GemmRun> run = multiply(chosen->plan, inputs, place.backend, *wanted);
  if (!run) return run.error();
  say_run(chosen->plan, inputs, place, *wanted, *run, answer);
  return std::move(run->result);
}

Result<GemmResult> read_result(const GemmFlags& flags, const GemmInputs& inputs) {
  Result<std::vector<std::byte>> d = read_result(flags.check_file, inputs, flags.files.bf16_as_uint16);
  if (!d) return d.error();
  return GemmResult{.d = std::move(*d), .scale_d = inputs.scale_d};
}

Status write_result(const GemmFlags& flags, const GemmInputs& inputs, const GemmResult& result, Answer& answer) {
  const GemmProblem& p = inputs.problem;
  if (Status s = write_npy(flags.out, p.type_d, inputs.shape_d, result.d); !s) return s;
  answer.say("wrote " + flags.out);
  answer.json["output"] = flags.out;
  if (p.scaling_d != Scaling::per_vector_128) return Nothing{};
  const std::string& scales = flags.files.scales_d.path;
  if (Status s = write_result_scales(scales, p, inputs.shape_d, result.scale_d); !s) return s;
  answer.say("wrote " + scales);
  answer.json["scales"] = scales;
  return Nothing{};
}

// Found scales go where --scale-d says, as D goes where -o says.
Status check_scale_path(const GemmFlags& flags, const GemmProblem& p) {
  if (p.scaling_d != Scaling::per_vector_128 || !flags.check_file.empty()) return Nothing{};
  const std::string& scales = flags.files.scales_d.path;
  if (flags.out.empty() != scales.empty())
    return Error{ErrorCode::invalid_argument,
                 "numbers without their scales are worth nothing, and the other way round; pass both -o D.npy and --scale-d SD.npy"};
  return scales.empty() ? Status(Nothing{}) : check_folder_of(scales);
}

Outcome multiply_files(const GemmFlags& flags, const Session& session) {
  if (Status s = check_output_path(flags); !s) return s.error();
  GemmFiles files = flags.files;
  files.d_is_there = !flags.check_file.empty();
  const Result<GemmInputs> inputs = read_gemm_inputs(files);
  if (!inputs) return inputs.error();
  if (Status s = check_scale_path(flags, inputs->problem); !s) return s.error();
  const auto samples = samples_to_check(flags, *inputs);
  if (!samples) return samples.error();
  Answer answer{.as_json = session.json};
  say_inputs(*inputs, answer);

  Result<GemmResult> result = flags.check_file.empty() ? compute(flags, *inputs, answer) : read_result(flags, *inputs);
  if (!result) return result.error();
  if (!flags.out.empty())
    if (Status s = write_result(flags, *inputs, *result, answer); !s) return s.error();
  int exit_code = 0;
  if (*samples) {
    const Result<VerifyReport> report = verify(inputs->problem, arguments_of(*inputs, *result), inputs->c.data(), **samples);
    if (!report) return report.error();
    answer.say(to_string(*report));
    answer.json["check"] = to_entry(*report);
    if (!report->ok()) {
      fmt::print(stderr, "sluice: the result is wrong: {}\n", to_string(*report));
      exit_code = kExitFailure;
    }
  }
  if (session.json) print_json(answer.json);
  return exit_code;
}

void add_file_options(CLI::App& command, GemmFlags& flags) {
  GemmFiles& files = flags.files;
  command.add_option("A", files.a, "A, [m, k] or [batch, m, k], in bf16, float16, float32, float64, or FP8 as uint8");
  command.add_option("B", files.b, "B, [k, n] or [batch, k, n]; of groups [groups, k, n]; of 4 bits what `sluice pack` wrote");
  command.add_option("--m", files.m, "Without files: rows of a random A");
  command.add_option("--n", files.n, "Columns of B: without files of a random one, and of packed weights");
  command.add_option("--k", files.k, "Without files: columns of a random A, rows of a random B");
  command.add_option("--data-seed", files.data_seed, "Without files: draws the numbers (default: 0)");
  command
      .add_option("--grouping", files.groups.grouping,
                  fmt::format("Whether B's matrices belong to groups of rows of A: {}. Ragged: the rows of all groups follow one "
                              "another in A, [m, k]; masked: A is [groups, m, k], of whose rows the first count; along-k: the columns "
                              "of A, [m, k], and the rows of B, [k, n], do, and D is [groups, m, n]",
                              kGroupingsOfFiles))
      ->capture_default_str();
  command.add_option("--groups", files.groups.sizes,
                     "Rows of each group, or elements of K (with FP8 multiples of 128): numbers separated by commas, or a .npy file (but "
                     "for masked groups of where each begins and the last ends)");
  add_rows_flags(command, files.groups.rows);
  command.add_option("-C,--c", files.c, "C, [m, n] or [batch, m, n]; --beta is 1 unless given");
  command.add_option("--bias", files.bias, "Bias, one dimension");
  command.add_option("--bias-kind", files.bias_kind, "per_row (m elements), per_column (n elements) or per_group_column ([batch, n])")
      ->capture_default_str();
  command.add_option("-o,--output", flags.out, "Where D goes");
  command.add_flag("--transpose-a,--a-is-km", files.a_is_transposed, "A's file holds [k, m]");
  command.add_flag("--transpose-b,--b-is-nk", files.b_is_transposed, "B's file holds [n, k]");
  command.add_flag("--bf16-as-uint16", files.bf16_as_uint16, "Files of uint16 hold the bits of bf16 numbers");
  command.add_option("--type", files.type, fmt::format("Multiply as {} (default: the 16-bit type of A or B, else bf16)", kInputTypes));
  command.add_option("--out-type", files.out_type, fmt::format("Type of D: {} (default: as multiplied, with FP8 bf16)", kOutputTypes));
  add_scaling_flags(command, files.scales_a.scaling, files.scales_b.scaling,
                    " (default: as the file of scales says, or none). Without such a file, scales are found from A's numbers");
  command.add_option("--scale-a", files.scales_a.path, "FP8: the scales of A, [], [m], [m, k/128] or [m/128, k/128], in float32");
  command.add_option("--scale-b", files.scales_b.path, "FP8: the scales of B, [], [n], [n, k/128] or [n/128, k/128]");
  add_result_scaling_flag(command, files.scales_d.scaling);
  command.add_option("--scale-d", files.scales_d.path,
                     "D in FP8: its scale, [] (tensor), or where those that are found go, [m, n/128] (1x128), in float32");
  add_w4_flags(command, files.w4, "128, or as the file says");
  command.add_option(
      "--order", files.w4_order,
      "Weights of 4 bits with act-order: the order of K, int32 [k], that `sluice pack --order` wrote; A's columns are brought into it");
  add_epilogue_flags(command, files.epilogue);
}

}  // namespace

void add_gemm_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<GemmFlags>();
  CLI::App* command = add_command<GemmFlags>(
      app, session, "gemm",
      "Multiply .npy matrices: D = activation(alpha A B + beta C + bias), on a Hopper GPU, an emulated one, or by plain loops", flags,
      &multiply_files);
  add_file_options(*command, *flags);
  // A flag takes a value only behind '=': a file name behind it stays a file name.
  command->add_flag(
      "--check{auto}", flags->check,
      "Verify D elementwise in double precision; --check=1000 that many elements, --check=all every one however long it takes");
  command->add_option("--check-file", flags->check_file, "Compute nothing: verify the D in this file");
  CLI::Option* plan_file = command->add_option("--plan-file", flags->plan_file, "Use the plan in this file (of `sluice plan --json`)");
  add_place_flags(*command, flags->place);
  add_device_flag(*command, flags->device);
  add_planner_flags(*command, flags->planner);
  for (const char* flag : {"--device", "--schedule", "--scheduler", "--raster", "--tile-m", "--tile-n", "--kernel", "--calibration"})
    command->get_option(flag)->excludes(plan_file);
  add_plans_flag(*command, flags->plans)->excludes(plan_file);
}

}  // namespace sluice::cli
