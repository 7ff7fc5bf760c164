#include "planning.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "choices.hpp"
#include "session.hpp"
#include "sluice/plan.hpp"
#include "sluice/run.hpp"

namespace sluice::cli {
namespace {

constexpr const char* kDefaultDevice = "h200";

bool is_file_name(const std::string& text) { return text.find('/') != std::string::npos || text.ends_with(".json"); }

Status check_finite(const char* flag, float value) {
  if (std::isfinite(value)) return Nothing{};
  return Error{ErrorCode::invalid_argument, fmt::format("{} = {} is not finite; pass a number that fp32 can hold", flag, value)};
}

}  // namespace

void add_planner_flags(CLI::App& command, PlannerFlags& flags) {
  const std::string group = "Restrict the planner";
  command.add_option("--schedule", flags.schedule, fmt::format("Only kernels of this schedule: {}", kSchedules))->group(group);
  command.add_option("--scheduler", flags.scheduler, fmt::format("How tiles are dealt to workers: {}", kSchedulers))->group(group);
  command.add_option("--splits", flags.splits, "With split-k: pieces of each tile")->check(above_zero())->group(group);
  command.add_option("--regions", flags.regions, "With stream-k and hybrid: separate sets of tiles and clusters")
      ->check(above_zero())
      ->group(group);
  command.add_option("--min-k-tiles", flags.min_k_tiles, "With split-k, stream-k and hybrid: no piece of a tile is shorter")
      ->check(above_zero())
      ->group(group);
  command
      .add_option("--lead", flags.lead,
                  "With split-k: by so many k-tiles the last piece of a tile is longer; -1: none (default: as predicted)")
      ->group(group);
  command.add_option("--claim", flags.claim, fmt::format("How clusters come by their work: {}", kClaims))->group(group);
  command.add_option("--reduction", flags.reduction, fmt::format("With split-k: how the pieces of a tile come together: {}", kReductions))
      ->group(group);
  command.add_option("--determinism", flags.determinism, fmt::format("What may change the bits of a result: {}", kDeterminisms))
      ->capture_default_str()
      ->group(group);
  command.add_option("--raster", flags.raster, fmt::format("Direction in which cohorts of tiles advance: {}", kRasters))->group(group);
  command.add_option("--tile-m", flags.tile_m, "Only kernels with tiles of this many rows")->check(above_zero())->group(group);
  command.add_option("--tile-n", flags.tile_n, "Only kernels with tiles of this many columns")->check(above_zero())->group(group);
  command.add_option("--kernel", flags.kernel, "Only this kernel (see `sluice list`)")->group(group);
  add_calibration_flag(command, flags.calibration);
}

CLI::Option* add_calibration_flag(CLI::App& command, std::string& path) {
  return command.add_option("--calibration", path,
                            "Predict with the constants in this file (of `sluice calibrate`), not the built-in ones");
}

Result<std::shared_ptr<const Calibration>> read_calibration(const std::string& path) {
  if (path.empty()) return std::shared_ptr<const Calibration>();
  const Result<std::string> text = read_text_file(path);
  if (!text) return text.error();
  Result<Calibration> read = calibration_from_json(*text);
  if (!read) return Error{read.error().code, path + ": " + read.error().message};
  return std::make_shared<const Calibration>(std::move(*read));
}

Result<PlanOptions> to_plan_options(const PlannerFlags& flags) {
  PlanOptions options{.splits = flags.splits,
                      .stream_k_regions = flags.regions,
                      .min_k_tiles = flags.min_k_tiles,
                      .lead = flags.lead,
                      .kernel_name = flags.kernel,
                      .tile_m = flags.tile_m,
                      .tile_n = flags.tile_n};
  if (Status s = choose_into(options.schedule, "--schedule", flags.schedule, &parse_kernel_schedule, kSchedules); !s) return s.error();
  if (Status s = choose_into(options.scheduler, "--scheduler", flags.scheduler, &parse_scheduler, kSchedulers); !s) return s.error();
  if (Status s = choose_into(options.raster, "--raster", flags.raster, &parse_rasterization, kRasters); !s) return s.error();
  if (Status s = choose_into(options.claim, "--claim", flags.claim, &parse_work_claim, kClaims); !s) return s.error();
  if (Status s = choose_into(options.reduction, "--reduction", flags.reduction, &parse_reduction, kReductions); !s) return s.error();
  if (Status s = choose_into(options.determinism, "--determinism", flags.determinism, &parse_determinism, kDeterminisms); !s)
    return s.error();
  Result<std::shared_ptr<const Calibration>> calibration = read_calibration(flags.calibration);
  if (!calibration) return calibration.error();
  options.calibration = std::move(*calibration);
  const auto named = [&](const KernelConfig& kernel) { return name(kernel) == flags.kernel; };
  if (!flags.kernel.empty() && std::none_of(kernel_list().begin(), kernel_list().end(), named))
    return Error{ErrorCode::not_found, fmt::format("no kernel is called '{}'; `sluice list` shows the {} kernels of this build",
                                                   flags.kernel, kernel_list().size())};
  return options;
}

void add_epilogue_flags(CLI::App& command, EpilogueFlags& flags) {
  command.add_option("--alpha", flags.alpha, "Scale of A B")->capture_default_str();
  command.add_option("--beta", flags.beta, "Scale of C; 0 never reads C. Default: 0, and 1 where a C is given");
  command.add_option("--activation", flags.activation, fmt::format("Applied to the result: {}", kActivations))->capture_default_str();
}

Result<Epilogue> to_epilogue(const EpilogueFlags& flags, Bias bias) {
  Epilogue epilogue{.alpha = flags.alpha, .beta = flags.beta.value_or(0.0f), .bias = bias};
  if (Status s = check_finite("--alpha", flags.alpha); !s) return s.error();
  if (Status s = check_finite("--beta", epilogue.beta); !s) return s.error();
  if (Status s = choose_into(epilogue.activation, "--activation", flags.activation, &parse_activation, kActivations); !s) return s.error();
  return epilogue;
}

void add_constant_flag(CLI::App& command, std::string& constant) {
  command
      .add_option("--constant", constant,
                  "Operands that no kernel still running writes, fetched before the kernel before this one ends: a, b, ab, none")
      ->capture_default_str()
      ->check(CLI::IsMember({"a", "b", "ab", "none"}));
}

void add_rows_flags(CLI::App& command, RowsFlags& rows) {
  command
      .add_option("--expected-rows", rows.expected,
                  "Groups: about how many rows one has, for the planner (default: an equal share, or all there is room for)")
      ->check(above_zero());
  command.add_option("--most-rows", rows.most, "Groups: how many rows one has at most, for the planner (default: not known)")
      ->check(above_zero());
}

Status check_rows_flags(const RowsFlags& rows, Grouping grouping, const char* groupings) {
  for (const auto& [flag, value] : {std::pair{"--expected-rows", rows.expected}, {"--most-rows", rows.most}})
    if (grouping == Grouping::none && value != 0)
      return Error{ErrorCode::invalid_argument, fmt::format("{} is about groups; pass --grouping {}, or leave it out", flag, groupings)};
  return Nothing{};
}

void add_scaling_flags(CLI::App& command, std::string& scaling_a, std::string& scaling_b, const char* more) {
  command.add_option("--scaling-a", scaling_a, fmt::format("FP8: what a scale of A is for: {}{}", kScalings, more));
  command.add_option("--scaling-b", scaling_b, "The same of B");
}

void add_result_scaling_flag(CLI::App& command, std::string& scaling_d) {
  command.add_option("--scaling-d", scaling_d, fmt::format("D in FP8: its scales: {}", kResultScalings));
}

void add_w4_flags(CLI::App& command, W4Flags& flags, const char* more) {
  command.add_option(
      "--w4-group", flags.group_size,
      fmt::format("Weights of 4 bits: elements of K that share a scale: 32, 64, 128, 0 for a whole column (default: {})", more));
  command.add_flag("--w4-zeros", flags.zero_points, "Weights of 4 bits: each group has a zero point");
}

W4Format to_w4_format(const W4Flags& flags) {
  return {.group_size = flags.group_size.value_or(W4Format{}.group_size), .zero_points = flags.zero_points};
}

Status check_w4_flags(const W4Flags& flags, DataType type_b) {
  if (type_b == DataType::int4 || (!flags.group_size && !flags.zero_points)) return Nothing{};
  return Error{ErrorCode::invalid_argument, fmt::format("{} is for weights of 4 bits; pass --type bf16,int4, or leave it out",
                                                        flags.group_size ? "--w4-group" : "--w4-zeros")};
}

namespace {

void add_scale_flags(CLI::App& command, ScaleFlags& flags) {
  add_scaling_flags(command, flags.scaling_a, flags.scaling_b, "");
  command.add_option("--scale-layout-a", flags.layout_a,
                     fmt::format("FP8: how A's scales lie, a row of them for each vector or block: {}", kScaleLayouts));
  command.add_option("--scale-layout-b", flags.layout_b, "The same of B");
  command.add_option("--ld-scale-a", flags.ld_a, "FP8: leading dimension of A's scales in elements (default: dense)");
  command.add_option("--ld-scale-b", flags.ld_b, "The same of B");
  add_result_scaling_flag(command, flags.scaling_d);
  command.add_option("--scale-layout-d", flags.layout_d, "The same of D's scales as of A's");
  command.add_option("--ld-scale-d", flags.ld_d, "The same of D's scales as of A's");
}

Status read_scale_flags(const ScaleFlags& flags, GemmProblem& problem) {
  if (Status s = choose_into(problem.scaling_a, "--scaling-a", flags.scaling_a, &parse_scaling, kScalings); !s) return s;
  if (Status s = choose_into(problem.scaling_b, "--scaling-b", flags.scaling_b, &parse_scaling, kScalings); !s) return s;
  if (Status s = choose_into(problem.scale_layout_a, "--scale-layout-a", flags.layout_a, &parse_layout, kScaleLayouts); !s) return s;
  if (Status s = choose_into(problem.scale_layout_b, "--scale-layout-b", flags.layout_b, &parse_layout, kScaleLayouts); !s) return s;
  problem.ld_scale_a = flags.ld_a;
  problem.ld_scale_b = flags.ld_b;
  if (Status s = choose_into(problem.scaling_d, "--scaling-d", flags.scaling_d, &parse_scaling, kResultScalings); !s) return s;
  if (Status s = choose_into(problem.scale_layout_d, "--scale-layout-d", flags.layout_d, &parse_layout, kScaleLayouts); !s) return s;
  problem.ld_scale_d = flags.ld_d;
  return Nothing{};
}

}  // namespace

void add_problem_flags(CLI::App& command, ProblemFlags& flags, bool required) {
  command.add_option("--m", flags.m, "Rows of A and D")->required(required);
  command.add_option("--n", flags.n, "Columns of B and D")->required(required);
  command.add_option("--k", flags.k, "Columns of A, rows of B")->required(required);
  command.add_option("--batch", flags.batch, "Matrices in the batch, or groups")->capture_default_str();
  command
      .add_option(
          "--grouping", flags.grouping,
          fmt::format("Whether --batch counts groups, whose sizes the device reads: {}. Ragged: --m rows in all; masked: room for --m "
                      "rows in each; along-k: --k in all; general: --m, --n and --k are the largest of any",
                      kGroupings))
      ->capture_default_str();
  add_rows_flags(command, flags.rows);
  command.add_option("--type", flags.type, fmt::format("Type of A and B: {}", kInputTypes))->capture_default_str();
  command.add_option("--out-type", flags.out_type,
                     fmt::format("Type of C, D and bias: {} (default: as A and B, with FP8 bf16)", kOutputTypes));
  command.add_option("--layout", flags.layout, fmt::format("Layouts of A and B: {}", kLayouts))->capture_default_str();
  command.add_option("--lda", flags.lda, "Leading dimension of A in elements (default: dense)");
  command.add_option("--ldb", flags.ldb, "Leading dimension of B in elements (default: dense)");
  command.add_option("--ldc", flags.ldc, "Leading dimension of C in elements (default: dense)");
  command.add_option("--ldd", flags.ldd, "Leading dimension of D in elements (default: dense)");
  command.add_option("--alignment-a", flags.alignment_a, "Alignment of the pointer to A in bytes")->capture_default_str();
  command.add_option("--alignment-b", flags.alignment_b, "Alignment of the pointer to B in bytes")->capture_default_str();
  command.add_option("--alignment-d", flags.alignment_d, "Alignment of the pointers to C, D and bias in bytes")->capture_default_str();
  add_constant_flag(command, flags.constant);
  add_scale_flags(command, flags.scales);
  add_w4_flags(command, flags.w4, "128");
  command.add_option("--bias", flags.bias, fmt::format("Bias: {}", kBiases))->capture_default_str();
  add_epilogue_flags(command, flags.epilogue);
}

Result<GemmProblem> to_problem(const ProblemFlags& flags) {
  GemmProblem problem{.m = flags.m, .n = flags.n, .k = flags.k, .batch = flags.batch};
  const Result<TypePair> types = choose("--type", flags.type, &parse_type_pair, kInputTypes);
  if (!types) return types.error();
  problem.type_a = types->a;
  problem.type_b = types->b;
  problem.type_d = usual_result_type(problem.type_a);
  if (Status s = check_w4_flags(flags.w4, problem.type_b); !s) return s.error();
  problem.w4 = to_w4_format(flags.w4);
  if (Status s = choose_into(problem.type_d, "--out-type", flags.out_type, &parse_data_type, kOutputTypes); !s) return s.error();
  const Result<LayoutPair> layouts = choose("--layout", flags.layout, &parse_layout_pair, kLayouts);
  if (!layouts) return layouts.error();
  problem.layout_a = layouts->a;
  problem.layout_b = layouts->b;
  problem.lda = flags.lda;
  problem.ldb = flags.ldb;
  problem.ldc = flags.ldc;
  problem.ldd = flags.ldd;
  problem.alignment_a_bytes = flags.alignment_a;
  problem.alignment_b_bytes = flags.alignment_b;
  problem.alignment_d_bytes = flags.alignment_d;
  if (Status s = read_scale_flags(flags.scales, problem); !s) return s.error();
  if (Status s = choose_into(problem.grouping, "--grouping", flags.grouping, &parse_grouping, kGroupings); !s) return s.error();
  problem.expected_rows = flags.rows.expected;
  problem.most_rows = flags.rows.most;
  if (Status s = check_rows_flags(flags.rows, problem.grouping, "ragged, masked or general"); !s) return s.error();
  problem.constant_a = flags.constant.find('a') == 0;
  problem.constant_b = flags.constant == "b" || flags.constant == "ab";
  const Result<Bias> bias = choose("--bias", flags.bias, &parse_bias, kBiases);
  if (!bias) return bias.error();
  const Result<Epilogue> epilogue = to_epilogue(flags.epilogue, *bias);
  if (!epilogue) return epilogue.error();
  problem.epilogue = *epilogue;
  return validate(problem);
}

void add_device_flag(CLI::App& command, std::string& device) {
  command.add_option("--device", device,
                     "The GPU to plan for: a name (see `sluice devices`), a .json file, or 'current'. Default: the current GPU if it is a "
                     "Hopper, else h200");
}

Result<ChosenDevice> choose_device(const std::string& text) {
  if (text.empty()) {
    if (Result<DeviceSpec> current = current_device()) return ChosenDevice{*current, "the current GPU"};
    Result<DeviceSpec> device = find_device(kDefaultDevice);
    if (!device) return device.error();
    return ChosenDevice{
        *device, built_with_cuda() ? "the default, as there is no Hopper GPU here" : "the default, as this build has no CUDA kernels"};
  }
  if (text == "current") {
    Result<DeviceSpec> current = current_device();
    if (!current) return current.error();
    return ChosenDevice{*current, "the current GPU"};
  }
  if (is_file_name(text)) {
    const Result<std::string> json = read_text_file(text);
    if (!json) return json.error();
    Result<DeviceSpec> device = device_from_json(*json);
    if (!device) return Error{device.error().code, text + ": " + device.error().message};
    return ChosenDevice{*device, "from " + text};
  }
  Result<DeviceSpec> device = find_device(text);
  if (!device) return Error{device.error().code, device.error().message + ", 'current', or the path of a .json file"};
  return ChosenDevice{*device, "built in"};
}

std::string device_line(const ChosenDevice& device) { return fmt::format("for      {}, {}", device.spec.name, device.why); }

Result<PlannedProblem> make_plan(const PlanningFlags& flags, bool keep_candidates) {
  const Result<GemmProblem> problem = to_problem(flags.problem);
  if (!problem) return problem.error();
  Result<PlanOptions> options = to_plan_options(flags.planner);
  if (!options) return options.error();
  options->keep_candidates = keep_candidates;
  const Result<ChosenDevice> device = choose_device(flags.device);
  if (!device) return device.error();
  Result<Plan> made = plan(*problem, device->spec, *options);
  if (!made) return made.error();
  return PlannedProblem{std::move(*made), device_line(*device)};
}

}  // namespace sluice::cli
