// sluice quantize: FP8 numbers and their scales, as `sluice gemm` reads them, from a matrix in an .npy file.
#include <chrono>
#include <cmath>
#include <cstdlib>

#include <fmt/core.h>

#include "choices.hpp"
#include "fp8_operands.hpp"
#include "gemm_place.hpp"
#include "gpu.hpp"
#include "npy.hpp"
#include "operands.hpp"
#include "session.hpp"
#include "sluice/quantize.hpp"

namespace sluice::cli {
namespace {

struct QuantizeFlags {
  std::string x, y;  // paths; both may be empty: random numbers then
  std::int64_t m = 0, k = 0;
  std::uint64_t data_seed = 0;
  bool bf16_as_uint16 = false, silu_times = false, power_of_two_scales = false, check = false;
  std::string type = "e4m3", from, scaling = "1x128", out, scales;
  PlaceFlags place;
};

constexpr const char* kWideTypes = "bf16, fp16, fp32";
constexpr const char* kNarrowTypes = "e4m3, e5m2";

Error wrong(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }

struct Inputs {
  QuantizeProblem problem;  // validated
  std::vector<std::byte> x, y;
  std::vector<std::string> lines;
};

Result<Matrices> read_matrix(const std::string& path, bool bf16_as_uint16) {
  Result<NpyArray> array = read_npy(path, bf16_as_uint16);
  if (!array) return array.error();
  Result<Matrices> matrix = to_matrices(std::move(*array), path, false);
  if (!matrix) return matrix;
  if (matrix->batched) return wrong(path + ": has three dimensions; quantise a matrix, or save array.reshape(-1, array.shape[-1])");
  if (matrix->type == NpyType::bytes) return Error{ErrorCode::bad_format, path + ": holds bytes; they are of 8 bits already"};
  make_row_major(*matrix);
  return matrix;
}

Result<Matrices> read_or_draw(const QuantizeFlags& flags, const std::string& path, std::uint64_t seed) {
  if (!flags.x.empty()) return read_matrix(path, flags.bf16_as_uint16);
  constexpr double kMostElements = 1e10;
  if (flags.m <= 0 || flags.k <= 0) return wrong("there is nothing to quantise; pass X.npy, or --m and --k for random numbers");
  if (static_cast<double>(flags.m) * static_cast<double>(flags.k) > kMostElements)
    return wrong("--m and --k make more than 1e10 random numbers; pass smaller ones");
  return random_matrices(0, flags.m, flags.k, Layout::row_major, seed);
}

// What a file holds is quantised as it is, where a kernel reads it.
DataType usual_type(NpyType type) {
  if (type == NpyType::bf16) return DataType::bf16;
  return type == NpyType::fp16 ? DataType::fp16 : DataType::fp32;
}

Status add_matrix(const char* name, const std::string& path, Matrices matrix, DataType type, std::vector<std::byte>& to, Inputs& inputs) {
  if (matrix.rows != inputs.problem.m || matrix.columns != inputs.problem.k)
    return wrong(fmt::format("{} is {} x {} and X is {} x {}; they must be of one shape", path, matrix.rows, matrix.columns,
                             inputs.problem.m, inputs.problem.k));
  std::int64_t too_large = 0;
  inputs.lines.push_back(fmt::format("{:<4} {}: {} x {} {}{}", name, path.empty() ? "random" : path, matrix.rows, matrix.columns,
                                     to_string(matrix.type),
                                     same_type(matrix.type, type) ? "" : fmt::format(", converted to {}", sluice::to_string(type))));
  to = convert(std::move(matrix.data), matrix.type, type, too_large);
  if (too_large == 0) return Nothing{};
  return wrong(fmt::format("{} too large for {}; pass --from fp32", elements_are(too_large, name), sluice::to_string(type)));
}

Result<Inputs> read_inputs(const QuantizeFlags& flags) {
  if (!flags.y.empty() && flags.x.empty()) return wrong("--silu-times takes a file, but X is random; pass X.npy, or --silu-times-random");
  if (!flags.x.empty() && (flags.m != 0 || flags.k != 0)) return wrong("--m and --k are for random numbers; leave them out, the file says");
  if (!flags.x.empty() && flags.silu_times) return wrong("--silu-times-random is for random numbers; pass --silu-times Y.npy");
  Inputs inputs;
  QuantizeProblem& p = inputs.problem;
  Result<Matrices> x = read_or_draw(flags, flags.x, 2 * flags.data_seed);
  if (!x) return x.error();
  p = {.m = x->rows, .k = x->columns, .type_x = flags.x.empty() ? DataType::bf16 : usual_type(x->type)};
  p.power_of_two_scales = flags.power_of_two_scales;
  if (Status s = choose_into(p.type_q, "--type", flags.type, &parse_data_type, kNarrowTypes); !s) return s.error();
  if (Status s = choose_into(p.type_x, "--from", flags.from, &parse_data_type, kWideTypes); !s) return s.error();
  if (Status s = choose_into(p.scaling, "--scaling", flags.scaling, &parse_scaling, "vector, 1x128, 128x128"); !s) return s.error();
  if (flags.silu_times || !flags.y.empty()) p.input = QuantizeInput::silu_times;
  const Result<QuantizeProblem> valid = validate(p);
  if (!valid) return valid.error();
  p = *valid;
  if (Status s = add_matrix("X", flags.x, std::move(*x), p.type_x, inputs.x, inputs); !s) return s.error();
  if (p.input == QuantizeInput::plain) return inputs;
  Result<Matrices> y = read_or_draw(flags, flags.y, 2 * flags.data_seed + 1);
  if (!y) return y.error();
  if (Status s = add_matrix("Y", flags.y, std::move(*y), p.type_x, inputs.y, inputs); !s) return s.error();
  return inputs;
}

// All bits set is NaN in both types and in fp32: a number that nobody writes shows.
struct Outputs {
  std::vector<std::byte> q, scales;
  explicit Outputs(const QuantizeProblem& p)
      : q(static_cast<std::size_t>(p.m * p.k), std::byte{0xff}),
        scales(static_cast<std::size_t>(scale_elems(p)) * sizeof(float), std::byte{0xff}) {}
};

QuantizeArguments arguments_of(const Inputs& inputs, Outputs& outputs) {
  return {.x = inputs.x.data(),
          .y = inputs.y.empty() ? nullptr : inputs.y.data(),
          .q = outputs.q.data(),
          .scale = reinterpret_cast<float*>(outputs.scales.data())};
}

Status quantize_there(const Inputs& inputs, Outputs& outputs, Backend backend, const WantedPlace& wanted) {
  const QuantizeArguments arguments = arguments_of(inputs, outputs);
  switch (backend) {
    case Backend::cuda:
      return quantize_on_gpu(inputs.problem, arguments);
    case Backend::emulator:
      return quantize_on_emulator(inputs.problem, arguments, wanted.emulator);
    case Backend::reference:
      break;
  }
  return quantize_on_cpu(inputs.problem, arguments, wanted.threads);
}

// Numbers and scales that differ from the reference's. exp() may differ in its last bits, and then a number by one step.
Result<std::int64_t> count_differences(const Inputs& inputs, Outputs& got) {
  Outputs expected(inputs.problem);
  if (Status s = quantize_on_cpu(inputs.problem, arguments_of(inputs, expected)); !s) return s.error();
  if (inputs.problem.input == QuantizeInput::plain) {
    std::int64_t different = 0;
    for (std::size_t i = 0; i < got.q.size(); ++i) different += got.q[i] != expected.q[i] ? 1 : 0;
    for (std::size_t i = 0; i < got.scales.size(); ++i) different += got.scales[i] != expected.scales[i] ? 1 : 0;
    return different;
  }
  std::int64_t different = 0;
  const auto step = [](std::byte bits) {
    const int magnitude = std::to_integer<int>(bits & std::byte{0x7f});
    return (bits & std::byte{0x80}) != std::byte{0} ? -magnitude : magnitude;
  };
  for (std::size_t i = 0; i < got.q.size(); ++i) different += std::abs(step(got.q[i]) - step(expected.q[i])) > 1 ? 1 : 0;
  return different;
}

Status write_outputs(const QuantizeFlags& flags, const QuantizeProblem& p, const Outputs& outputs) {
  if (!flags.out.empty())
    if (Status s = write_npy(flags.out, p.type_q, {p.m, p.k}, outputs.q); !s) return s;
  if (flags.scales.empty()) return Nothing{};
  return write_npy(flags.scales, DataType::fp32, scale_shape(p.scaling, p.m, p.k), outputs.scales);
}

Outcome quantize_files(const QuantizeFlags& flags, const Session& session) {
  if (flags.out.empty() && !flags.check) return wrong("the result has nowhere to go; pass -o Q.npy and --scales S.npy, or --check");
  if (flags.out.empty() != flags.scales.empty())
    return wrong("numbers without their scales are worth nothing, and the other way round; pass both -o Q.npy and --scales S.npy");
  for (const std::string& path : {flags.out, flags.scales})
    if (Status s = check_folder_of(path); !s) return s.error();
  const Result<WantedPlace> wanted = read_place(flags.place);
  if (!wanted) return wanted.error();
  const Result<Inputs> inputs = read_inputs(flags);
  if (!inputs) return inputs.error();
  const QuantizeProblem& p = inputs->problem;
  const Place place = choose_place(flags.place, *wanted, gpu_or_reference);

  Outputs outputs(p);
  const auto begin = std::chrono::steady_clock::now();
  if (Status s = quantize_there(*inputs, outputs, place.backend, *wanted); !s) return s.error();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (Status s = write_outputs(flags, p, outputs); !s) return s.error();

  Json json = {{"problem", describe(p)},
               {"shape", {p.m, p.k}},
               {"scale_shape", scale_shape(p.scaling, p.m, p.k)},
               {"inputs", inputs->lines},
               {"backend", sluice::to_string(place.backend)},
               {"why", place.why},
               {"where", place.text},
               {"seconds", seconds}};
  std::vector<std::string> lines = inputs->lines;
  lines.push_back("Q    " + describe(p));
  lines.push_back(fmt::format("ran  {} ({})", place.text, place.why));
  if (!flags.out.empty()) {
    lines.push_back(fmt::format("wrote {} and {}", flags.out, flags.scales));
    json["output"] = flags.out;
    json["scales"] = flags.scales;
  }
  int exit_code = 0;
  if (flags.check) {
    const Result<std::int64_t> different = count_differences(*inputs, outputs);
    if (!different) return different.error();
    json["different"] = *different;
    if (*different == 0) lines.push_back(fmt::format("{} numbers checked: all as the reference makes them", p.m * p.k));
    if (*different != 0) {
      fmt::print(stderr, "sluice: the result is wrong: {} numbers or bytes of scales differ from the reference\n", *different);
      exit_code = kExitFailure;
    }
  }
  print_answer(session, json, lines);
  return exit_code;
}

}  // namespace

void add_quantize_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<QuantizeFlags>();
  CLI::App* command = add_command<QuantizeFlags>(app, session, "quantize", "Round a .npy matrix to FP8 with scales, as gemm reads them",
                                                 flags, &quantize_files);
  command->add_option("X", flags->x, "X, [m, k], in bf16, float16, float32 or float64");
  command->add_option("--silu-times", flags->y, "Y, [m, k]: quantise silu(X) * Y");
  command->add_option("--m", flags->m, "Without files: rows of random numbers");
  command->add_option("--k", flags->k, "Without files: columns of random numbers");
  command->add_flag("--silu-times-random", flags->silu_times, "Without files: quantise silu(X) * Y of a random Y, too");
  command->add_option("--data-seed", flags->data_seed, "Without files: draws the numbers (default: 0)");
  command->add_flag("--bf16-as-uint16", flags->bf16_as_uint16, "Files of uint16 hold the bits of bf16 numbers");
  command->add_option("--from", flags->from,
                      fmt::format("Round X and Y to this first: {} (default: the file's type, fp32 for float64)", kWideTypes));
  command->add_option("--type", flags->type, fmt::format("Of Q: {}", kNarrowTypes))->capture_default_str();
  command->add_option("--scaling", flags->scaling, "A scale for each row (vector), or each 1x128 or 128x128 numbers")
      ->capture_default_str();
  command->add_flag("--power-of-two", flags->power_of_two_scales, "Round scales up to powers of two");
  command->add_option("-o,--output", flags->out, "Where Q goes, as uint8");
  command->add_option("--scales", flags->scales, "Where the scales go, [m], [m, k/128] or [m/128, k/128] in float32");
  command->add_flag("--check,--verify", flags->check, "Compare with what the reference makes of it");
  add_place_flags(*command, flags->place);
}

}  // namespace sluice::cli
