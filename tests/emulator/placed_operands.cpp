#include "placed_operands.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "gpu/packed_weights.hpp"

namespace sluice::test {
namespace {

constexpr unsigned char kPoison = 0xff;  // NaN in every format
constexpr double kSpread = 64;           // numbers that have scales take up more of e4m3's 448

// What the positive codes stand for, in their order: OCP 8-bit Floating Point Specification. NaN and infinities are left out.
std::vector<double> positive_numbers(DataType type) {
  const int fraction_bits = type == DataType::e4m3 ? 3 : 2, bias = type == DataType::e4m3 ? 7 : 15;
  const int largest = type == DataType::e4m3 ? 0x7e : 0x7b;
  std::vector<double> all;
  for (int code = 0; code <= largest; ++code) {
    const int exponent = code >> fraction_bits, fraction = code & ((1 << fraction_bits) - 1), one = 1 << fraction_bits;
    all.push_back(std::ldexp(exponent == 0 ? fraction : one + fraction, std::max(exponent, 1) - bias - fraction_bits));
  }
  return all;
}

// The nearest number's code; the largest number's beyond it.
unsigned char fp8_code(double value, DataType type) {
  static const std::vector<double> e4m3 = positive_numbers(DataType::e4m3), e5m2 = positive_numbers(DataType::e5m2);
  const std::vector<double>& numbers = type == DataType::e4m3 ? e4m3 : e5m2;
  if (std::isnan(value)) return 0x7f;
  const double magnitude = std::abs(value);
  auto code = std::lower_bound(numbers.begin(), numbers.end(), magnitude);
  if (code == numbers.end() || (code != numbers.begin() && magnitude - code[-1] < *code - magnitude)) --code;
  return static_cast<unsigned char>((code - numbers.begin()) | (value < 0 ? 0x80 : 0));
}

}  // namespace

GuardedMemory::GuardedMemory(DataType type, std::int64_t span_elems, int offset_elems)
    : type_(type),
      offset_bytes_(offset_elems * size_bytes(type)),
      bytes_(2 * kGuardBytes + 256 + static_cast<std::size_t>(offset_bytes_ + span_elems * size_bytes(type)), kPoison) {}

unsigned char* GuardedMemory::start() {
  unsigned char* const after_guard = bytes_.data() + kGuardBytes;
  return after_guard + (256 - reinterpret_cast<std::uintptr_t>(after_guard) % 256) % 256 + offset_bytes_;
}

void GuardedMemory::set(std::int64_t index, double value) {
  if (is_fp8(type_)) {
    start()[index] = fp8_code(value, type_);
    return;
  }
  const auto rounded = static_cast<float>(value);
  const std::uint16_t bits = type_ == DataType::bf16 ? to_bf16_bits(rounded) : to_fp16_bits(rounded);
  if (type_ == DataType::fp32)
    std::memcpy(start() + index * 4, &rounded, 4);
  else
    std::memcpy(start() + index * 2, &bits, 2);
}

PlacedOperands::PlacedOperands(const GemmProblem& problem, const gpu_tests::GemmCase& gemm_case, std::uint64_t seed)
    : problem_(problem),
      c_place_(gemm_case.c),
      exact_(gemm_case.exactness == bench::Exactness::exact),
      packed_(problem.type_b == DataType::int4 ? gpu_tests::random_packed_weights(problem, exact_, seed) : std::vector<std::byte>()),
      a_(problem.type_a, gpu_tests::span_a(problem), gemm_case.offset_a_elems),
      b_(problem.type_b == DataType::int4 ? DataType::e4m3 : problem.type_b, gpu_tests::span_b(problem),
         problem.type_b == DataType::int4 ? 0 : gemm_case.offset_b_elems),
      c_(problem.type_d, problem.epilogue.beta != 0 ? gpu_tests::span_c(problem) : 0, gemm_case.offset_d_elems),
      d_(problem.type_d, gpu_tests::span_d(problem), gemm_case.offset_d_elems),
      bias_(bias_type(problem.type_d), bias_elems(problem), gemm_case.offset_d_elems),
      scale_a_(DataType::fp32, scale_elems_a(problem), gemm_case.offset_scale_elems),
      scale_b_(DataType::fp32, scale_elems_b(problem), gemm_case.offset_scale_elems),
      scale_d_(DataType::fp32, scale_elems_d(problem), gemm_case.offset_scale_elems),
      groups_(gemm_case.groups) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::normal_distribution<double> normal;
  // Elements alone: what lies between them stays NaN, so that a read of it shows.
  const auto fill_with = [&](GuardedMemory& memory, std::int64_t vectors, std::int64_t length, std::int64_t leading,
                             std::int64_t batch_stride, const auto& draw) {
    const std::int64_t batch = batch_stride == 0 ? std::min<std::int64_t>(problem.batch, 1) : problem.batch;
    for (std::int64_t z = 0; z < batch; ++z)
      for (std::int64_t v = 0; v < vectors; ++v)
        for (std::int64_t i = 0; i < length; ++i) memory.set(z * batch_stride + v * leading + i, draw());
  };
  const auto fill = [&](GuardedMemory& memory, std::int64_t vectors, std::int64_t length, std::int64_t leading, std::int64_t batch_stride,
                        double spread = 1) {
    const auto draw = [&] { return exact_ ? static_cast<int>(random() % 7) - 3 : spread * normal(random); };
    fill_with(memory, vectors, length, leading, batch_stride, draw);
  };
  const auto fill_scales = [&](GuardedMemory& memory, const gpu_tests::ScaleRuns& runs, std::int64_t batch_stride) {
    const auto power = [&] { return std::ldexp(1.0, static_cast<int>(random() % 5) - 2); };
    const auto draw = [&] { return exact_ ? power() : std::uniform_real_distribution<double>(0.5, 1.5)(random) / kSpread; };
    fill_with(memory, runs.runs, runs.length, runs.pitch, batch_stride, draw);
  };
  const bool a_rows = problem.layout_a == Layout::row_major, b_rows = problem.layout_b == Layout::row_major;
  fill(a_, a_rows ? problem.m : problem.k, a_rows ? problem.k : problem.m, problem.lda, problem.batch_stride_a,
       problem.scaling_a == Scaling::none ? 1 : kSpread);
  if (problem.type_b == DataType::int4)
    std::copy(packed_.begin(), packed_.end(), static_cast<std::byte*>(b_.data()));
  else
    fill(b_, b_rows ? problem.k : problem.n, b_rows ? problem.n : problem.k, problem.ldb, problem.batch_stride_b,
         problem.scaling_b == Scaling::none ? 1 : kSpread);
  fill_scales(scale_a_, gpu_tests::scale_runs_a(problem), problem.batch_stride_scale_a);
  fill_scales(scale_b_, gpu_tests::scale_runs_b(problem), problem.batch_stride_scale_b);
  if (problem.epilogue.beta != 0) fill(c_, problem.m, problem.n, problem.ldc, problem.batch_stride_c);
  fill(bias_, bias_elems(problem) > 0 ? 1 : 0, bias_elems(problem), 0, 0);
  if (!gemm_case.null_inputs) {
    arguments_.a = a_.data();
    arguments_.b = b_.data();
    if (problem.scaling_a != Scaling::none) arguments_.scale_a = static_cast<const float*>(scale_a_.data());
    if (problem.scaling_b != Scaling::none) arguments_.scale_b = static_cast<const float*>(scale_b_.data());
  }
  if (problem.grouping != Grouping::none) {
    arguments_.groups = groups_.data();
    poison_rows_of_no_group();
  }
  arguments_.d = d_.data();
  if (problem.scaling_d != Scaling::none) arguments_.scale_d = static_cast<float*>(scale_d_.data());
  if (problem.epilogue.bias != Bias::none) arguments_.bias = bias_.data();
  if (problem.epilogue.beta != 0) arguments_.c = c_place_ == gpu_tests::CPlace::is_d ? d_.data() : c_.data();
}

void PlacedOperands::poison_rows_of_no_group() {
  if (problem_.grouping == Grouping::along_k) return poison_depth_of_no_group();
  if (problem_.layout_a != Layout::row_major) return;
  const std::int64_t matrices = problem_.batch_stride_a == 0 ? 1 : problem_.batch;  // one that groups share
  std::vector<bool> used(static_cast<std::size_t>(matrices * problem_.m));
  for (std::int64_t z = 0; z < problem_.batch; ++z) {
    const gpu_tests::Rows rows = gpu_tests::rows_of(problem_, groups_, z);
    for (std::int64_t row = rows.first; row < rows.first + rows.count; ++row)
      used[static_cast<std::size_t>(z % matrices * problem_.m + row)] = true;
  }
  for (std::int64_t row = 0; row < matrices * problem_.m; ++row)
    for (std::int64_t k = 0; k < problem_.k && !used[static_cast<std::size_t>(row)]; ++k)
      a_.set(row / problem_.m * problem_.batch_stride_a + row % problem_.m * problem_.lda + k, std::numeric_limits<double>::quiet_NaN());
}

void PlacedOperands::poison_depth_of_no_group() {
  std::vector<bool> used(static_cast<std::size_t>(problem_.k));
  for (std::int64_t z = 0; z < problem_.batch; ++z) {
    const gpu_tests::Rows depth = gpu_tests::depth_of(problem_, groups_, z);
    std::fill_n(used.begin() + depth.first, depth.count, true);
  }
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr std::int64_t kScaleBlock = 128;
  const auto poison = [&](GuardedMemory& memory, bool along_k, std::int64_t vectors, std::int64_t leading, std::int64_t k) {
    for (std::int64_t v = 0; v < vectors; ++v) memory.set(along_k ? v * leading + k : k * leading + v, kNan);
  };
  const auto poison_scales = [&](GuardedMemory& memory, Scaling scaling, Layout layout, std::int64_t vectors, std::int64_t leading,
                                 std::int64_t k) {
    if (!scales_along_k(scaling) || k % kScaleBlock != 0) return;
    const std::int64_t all = scaling == Scaling::per_block_128 ? (vectors + kScaleBlock - 1) / kScaleBlock : vectors;
    poison(memory, layout == Layout::row_major, all, leading, k / kScaleBlock);
  };
  for (std::int64_t k = 0; k < problem_.k; ++k) {
    if (used[static_cast<std::size_t>(k)]) continue;
    poison(a_, problem_.layout_a == Layout::row_major, problem_.m, problem_.lda, k);
    poison(b_, problem_.layout_b == Layout::column_major, problem_.n, problem_.ldb, k);
    poison_scales(scale_a_, problem_.scaling_a, problem_.scale_layout_a, problem_.m, problem_.ld_scale_a, k);
    poison_scales(scale_b_, problem_.scaling_b, problem_.scale_layout_b, problem_.n, problem_.ld_scale_b, k);
  }
}

void PlacedOperands::poison() {
  d_.fill(kPoison);
  if (c_place_ == gpu_tests::CPlace::is_d && problem_.epilogue.beta != 0)
    std::memcpy(d_.data(), c_.data(), static_cast<std::size_t>(gpu_tests::span_d(problem_) * size_bytes(problem_.type_d)));
  d_before_ = d_.bytes();
}

// Guards, gaps behind rows and between matrices.
std::string PlacedOperands::outside_of_d() {
  std::vector<unsigned char> expected = d_before_;
  const int size = size_bytes(problem_.type_d);
  for (std::int64_t z = 0; z < problem_.batch; ++z) {
    const gpu_tests::Rows rows = gpu_tests::rows_of(problem_, groups_, z);
    for (std::int64_t row = rows.first; row < rows.first + rows.count; ++row) {
      const std::int64_t at = d_.first_byte() + (z * problem_.batch_stride_d + row * problem_.ldd) * size;
      std::copy_n(d_.bytes().begin() + at, problem_.n * size, expected.begin() + at);
    }
  }
  const auto [got, wanted] = std::mismatch(d_.bytes().begin(), d_.bytes().end(), expected.begin());
  if (got == d_.bytes().end()) return "";
  return "byte " + std::to_string(got - d_.bytes().begin() - d_.first_byte()) + " from the start of D, outside of it, was overwritten";
}

std::string PlacedOperands::judge() {
  if (std::string outside = outside_of_d(); !outside.empty()) return outside;
  const Result<VerifyReport> report = verify(problem_, arguments_, problem_.epilogue.beta != 0 ? c_.data() : nullptr);
  if (!report) return report.error().message;
  if (!report->ok()) return to_string(*report);  // for integers the bound is zero
  return "";
}

}  // namespace sluice::test
