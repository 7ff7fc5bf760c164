#include "fp8_result_case.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <random>

namespace sluice::gpu_tests {
namespace {

using enum Scaling;
constexpr std::size_t kGuardBytes = 256;
constexpr unsigned char kPoison = 0xff;  // NaN in every format

// Memory with guards around it, all of it NaN to begin with.
class Guarded {
 public:
  explicit Guarded(std::size_t size, int offset_bytes = 0)
      : offset_(kGuardBytes + static_cast<std::size_t>(offset_bytes)), bytes_(size + 2 * kGuardBytes + 16, kPoison) {}

  unsigned char* data() {
    const std::size_t to_16 = (16 - reinterpret_cast<std::uintptr_t>(bytes_.data()) % 16) % 16;
    return bytes_.data() + to_16 + offset_;
  }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(data());
  }
  std::size_t first() { return static_cast<std::size_t>(data() - bytes_.data()); }
  const std::vector<unsigned char>& bytes() const { return bytes_; }

 private:
  std::size_t offset_;
  std::vector<unsigned char> bytes_;
};

std::int64_t matrices(const GemmProblem& p) { return p.grouping == Grouping::ragged ? 1 : p.batch; }
std::int64_t span(std::int64_t rows, std::int64_t columns, std::int64_t leading, std::int64_t batch, std::int64_t stride) {
  return rows <= 0 || columns <= 0 ? 0 : (batch - 1) * stride + (rows - 1) * leading + columns;
}

struct RowRange {
  std::int64_t first, end;
};
// The rows of D that are written, of matrix or group z.
RowRange rows_of(const GemmProblem& p, const std::vector<std::int32_t>& groups, std::int64_t z) {
  const auto at = [&](std::int64_t i) { return std::int64_t{groups[static_cast<std::size_t>(i)]}; };
  if (p.grouping == Grouping::ragged) return {at(z), at(z + 1)};
  return {0, p.grouping == Grouping::masked ? at(z) : p.m};
}

struct Operands {
  Guarded a, b, bias, scale_a, scale_b, scale_d, d;

  Operands(const GemmProblem& p, const OperandSizes& sizes, const Fp8ResultCase& one)
      : a(sizes.a),
        b(sizes.b),
        bias(sizes.bias),
        scale_a(sizes.scale_a),
        scale_b(sizes.scale_b),
        scale_d(sizes.scale_d),
        d(sizes.d, one.offset_d_bytes) {
    std::mt19937 random(17);
    std::normal_distribution<float> normal;
    const auto fill = [&](Guarded& memory, std::size_t count, DataType type, float spread) {
      for (std::size_t i = 0; i < count; ++i) {
        const float value = one.integers ? static_cast<float>(static_cast<int>(random() % 7) - 3) : spread * normal(random);
        memory.data()[i] = type == DataType::e4m3 ? to_e4m3_bits(value) : to_e5m2_bits(value);
      }
    };
    const auto fill_scales = [&](Guarded& memory, std::size_t bytes) {
      for (std::size_t i = 0; i < bytes / sizeof(float); ++i)
        memory.as<float>()[i] = one.integers ? std::ldexp(1.0f, static_cast<int>(random() % 5) - 2)
                                             : std::uniform_real_distribution<float>(0.01f, 0.03f)(random);
    };
    fill(a, sizes.a, p.type_a, 40.0f);
    fill(b, sizes.b, p.type_b, 40.0f);
    fill_scales(scale_a, sizes.scale_a);
    fill_scales(scale_b, sizes.scale_b);
    if (p.scaling_d == per_tensor) fill_scales(scale_d, sizes.scale_d);
    for (std::int64_t i = 0; i < bias_elems(p); ++i)
      bias.as<float>()[i] = one.integers ? static_cast<float>(static_cast<int>(random() % 9) - 4) : 20 * normal(random);
  }

  GemmArguments arguments(const GemmProblem& p, const std::vector<std::int32_t>& groups) {
    return {.a = a.data(),
            .b = b.data(),
            .d = d.data(),
            .bias = p.epilogue.bias == Bias::none ? nullptr : bias.data(),
            .scale_a = p.scaling_a == none ? nullptr : scale_a.as<float>(),
            .scale_b = p.scaling_b == none ? nullptr : scale_b.as<float>(),
            .scale_d = p.scaling_d == none ? nullptr : scale_d.as<float>(),
            .groups = groups.empty() ? nullptr : groups.data()};
  }
};

// What quantize() makes of D in fp32 in one matrix or group: into D and scales that lie as the problem says.
void quantise(const GemmProblem& p, const RowRange& rows, std::int64_t z, const float* d32, unsigned char* d, float* scales) {
  const std::int64_t rest = rows.end - rows.first;
  if (rest <= 0) return;
  const std::int64_t first = z * p.batch_stride_d + rows.first * p.ldd;
  if (p.scaling_d == per_vector_128) {
    const QuantizeProblem problem{.m = rest,
                                  .k = p.n,
                                  .type_x = DataType::fp32,
                                  .type_q = p.type_d,
                                  .ldx = p.ldd,
                                  .ldq = p.ldd,
                                  .scale_layout = p.scale_layout_d,
                                  .ld_scale = p.ld_scale_d};
    const std::int64_t step = p.scale_layout_d == Layout::row_major ? p.ld_scale_d : 1;
    float* const its = scales + z * p.batch_stride_scale_d + rows.first * step;
    // With column-major scales those of a group's rows lie among others', as ld_scale says.
    if (const Status s = quantize_on_cpu(problem, {.x = d32 + first, .q = d + first, .scale = its}, 1); !s) std::abort();
    return;
  }
  const float inverse = 1.0f / (p.scaling_d == per_tensor ? scales[z * p.batch_stride_scale_d] : 1.0f);
  for (std::int64_t row = 0; row < rest; ++row)
    for (std::int64_t column = 0; column < p.n; ++column) {
      const std::int64_t at = first + row * p.ldd + column;
      d[at] = p.type_d == DataType::e4m3 ? to_e4m3_bits(d32[at] * inverse) : to_e5m2_bits(d32[at] * inverse);
    }
}

std::string difference(const char* of, const Guarded& got, Guarded& expected) {
  const auto [at, other] = std::mismatch(got.bytes().begin(), got.bytes().end(), expected.bytes().begin());
  if (at == got.bytes().end()) return "";
  return "byte " + std::to_string((at - got.bytes().begin()) - static_cast<std::int64_t>(expected.first())) + " of " + of + " is " +
         std::to_string(*at) + " and not " + std::to_string(*other);
}

}  // namespace

std::vector<int> fp8_kernels() {
  std::vector<int> indices;
  for (std::size_t i = 0; i < kernel_list().size(); ++i)
    if (is_fp8(kernel_list()[i].type_b)) indices.push_back(static_cast<int>(i));
  return indices;
}

bool finds_scales(const KernelConfig& kernel) { return kernel.order == OperandOrder::rows_of_a && kernel.tile_n == 128; }

OperandSizes operand_sizes(const GemmProblem& p) {
  const auto bytes = [](std::int64_t count, std::size_t each) { return static_cast<std::size_t>(count) * each; };
  return {.a = bytes(span(p.m, p.k, p.lda, matrices(p), p.batch_stride_a), 1),
          .b = bytes(span(p.n, p.k, p.ldb, p.batch, p.batch_stride_b), 1),
          .d = bytes(span(p.m, p.n, p.ldd, matrices(p), p.batch_stride_d), static_cast<std::size_t>(size_bytes(p.type_d))),
          .bias = bytes(bias_elems(p), sizeof(float)),
          .scale_a = bytes(scale_elems_a(p), sizeof(float)),
          .scale_b = bytes(scale_elems_b(p), sizeof(float)),
          .scale_d = bytes(scale_elems_d(p), sizeof(float)),
          .groups = p.grouping == Grouping::none ? 0 : bytes(p.batch + (p.grouping == Grouping::masked ? 0 : 1), sizeof(std::int32_t))};
}

std::string judge_fp8_result(const KernelConfig& kernel, const Fp8ResultCase& one, const DeviceSpec& device, const RunPlan& run) {
  PlanOptions options = one.options;
  options.kernel_name = name(kernel);
  const Result<Plan> plan = sluice::plan(one.problem, device, options);
  if (!plan) return "no plan: " + plan.error().message;
  const GemmProblem& p = plan->problem;
  Plan wide = *plan;  // the same work, with D before it is rounded
  wide.problem.type_d = DataType::fp32;
  wide.problem.scaling_d = none;

  const OperandSizes sizes = operand_sizes(p);
  Operands operands(p, sizes, one);
  Guarded d32(4 * sizes.d), expected_d(sizes.d, one.offset_d_bytes), expected_scales(sizes.scale_d);
  GemmArguments arguments = operands.arguments(p, one.groups);
  if (p.scaling_d == per_tensor) std::memcpy(expected_scales.data(), operands.scale_d.data(), sizes.scale_d);
  if (const Status s = run(*plan, arguments); !s) return s.error().message;
  if (const Result<VerifyReport> report = verify(p, arguments, nullptr); !report || !report->ok())
    return report ? to_string(*report) : report.error().message;
  arguments.d = d32.data();
  arguments.scale_d = nullptr;
  if (const Status s = run(wide, arguments); !s) return "in fp32: " + s.error().message;
  for (std::int64_t z = 0; z < p.batch; ++z)
    quantise(p, rows_of(p, one.groups, z), z, d32.as<float>(), expected_d.data(), expected_scales.as<float>());
  std::string wrong = difference("D", operands.d, expected_d);
  if (wrong.empty()) wrong = difference("its scales", operands.scale_d, expected_scales);
  return wrong;
}

std::vector<Fp8ResultCase> fp8_result_cases(const KernelConfig& kernel, int kernel_index, bool small) {
  std::vector<Fp8ResultCase> cases;
  const std::int64_t rows = kernel.tile_m * kernel.cluster_m, columns = kernel.tile_n * kernel.cluster_n;
  int count = kernel_index;
  const auto turn = [&count](const auto& values) { return values[static_cast<std::size_t>(count) % values.size()]; };
  const auto add = [&](std::string what, std::int64_t m, std::int64_t n, std::int64_t k, Scaling scaling_d) -> Fp8ResultCase& {
    Fp8ResultCase one{.what = std::move(what) + ", " + to_string(scaling_d)};
    GemmProblem& p = one.problem;
    p.type_a = kernel.type_a, p.type_b = kernel.type_b;
    p.m = m, p.n = n, p.k = k, p.lda = p.ldb = (k + 15) / 16 * 16;
    p.type_d = turn(std::array{DataType::e4m3, DataType::e4m3, DataType::e5m2});
    p.scaling_a = turn(std::array{per_vector_128, none, per_tensor, per_vector, per_vector_128});
    p.scaling_b = turn(std::array{per_block_128, per_tensor, none, per_vector_128, per_vector, per_block_128, per_block_128});
    p.scaling_d = scaling_d;
    p.scale_layout_d = turn(std::array{Layout::row_major, Layout::column_major});
    p.ldd = turn(std::array{n, n + 5, (n + 15) / 16 * 16 + 16});
    if (scaling_d == per_vector_128)
      p.ld_scale_d = (p.scale_layout_d == Layout::row_major ? (n + 127) / 128 : m) + turn(std::array{0, 3, 0, 0});
    p.epilogue.alpha = turn(std::array{1.0f, 0.5f, -2.0f});
    p.epilogue.bias =
        turn(std::array{Bias::none, Bias::per_column, Bias::per_group_column, Bias::per_row, Bias::none, Bias::per_group_column});
    p.epilogue.activation = turn(std::array{Activation::none, Activation::relu, Activation::none, Activation::gelu_tanh, Activation::silu});
    one.integers = p.epilogue.activation <= Activation::relu && count % 2 == 0;
    one.offset_d_bytes = turn(std::array{0, 0, 1});
    if (one.offset_d_bytes != 0) p.alignment_d_bytes = 1;
    ++count;
    return cases.emplace_back(std::move(one));
  };
  std::vector<Scaling> kinds = {none, per_tensor};
  if (finds_scales(kernel)) kinds = {per_vector_128, per_tensor, per_vector_128, none, per_vector_128};
  for (const Scaling kind : kinds) {
    add("edges", turn(std::array{1, 63, 65, 130}), turn(std::array{200, 127, 129, 7}), turn(std::array{128, 272, 16}), kind);
    add("several tiles", rows + 9, columns + 77, 272, kind);
    Fp8ResultCase& batch = add("batch", 40, 136, 144, kind);
    batch.problem.batch = 3;
    if (kind != none && count % 2 == 0) batch.problem.batch_stride_scale_d = scale_elems_d(*validate(batch.problem)) + 5;
  }
  for (const Scaling kind : kinds) {
    for (const auto& [kind_of_schedule, splits] : {std::pair{SchedulerKind::split_k, 3}, {SchedulerKind::stream_k, 0}}) {
      Fp8ResultCase cut = add("in pieces", rows - 3, columns + 40, 1100, kind);
      cases.pop_back();
      cut.options.scheduler = kind_of_schedule;
      cut.options.splits = splits;
      cut.options.claim = WorkClaim::ticket;
      PlanOptions forced = cut.options;
      forced.kernel_name = name(kernel);
      if (plan(cut.problem, *find_device("h10"), forced)) cases.push_back(std::move(cut));  // the largest tiles are computed whole
    }
    Fp8ResultCase ragged = add("ragged groups", 300, 150, 256, kind), masked = add("masked groups", 70, 150, 272, kind);
    cases.resize(cases.size() - 2);
    ragged.problem.grouping = Grouping::ragged;
    ragged.problem.batch = 4;
    ragged.groups = {3, 70, 70, 201, 290};
    masked.problem.grouping = Grouping::masked;
    masked.problem.batch = 3;
    masked.groups = {70, 0, 33};
    cases.push_back(std::move(ragged));
    cases.push_back(std::move(masked));
  }
  if (!small) return cases;
  std::vector<Fp8ResultCase> some;
  for (std::size_t i = static_cast<std::size_t>(kernel_index) % 3; i < cases.size(); i += 3) some.push_back(std::move(cases[i]));
  return some;
}

}  // namespace sluice::gpu_tests
