#include "packed_weights.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <stdexcept>

#include "sluice/verify.hpp"
#include "sluice/w4.hpp"

namespace sluice::gpu_tests {
namespace {

constexpr std::array kFormats = {W4Format{128, false}, W4Format{128, true}, W4Format{64, false}, W4Format{32, true},
                                 W4Format{0, false},   W4Format{64, true},  W4Format{32, false}, W4Format{0, true}};

void check(const Status& status) {
  if (!status) throw std::runtime_error(status.error().message);
}

std::int64_t matrices_b(const GemmProblem& p) { return p.batch_stride_b == 0 ? std::min<std::int64_t>(p.batch, 1) : p.batch; }

// Streaming kernels have one scale for what they multiply at a time.
bool takes(const KernelConfig& kernel, const W4Format& format) {
  return kernel.schedule != KernelSchedule::streaming || format.group_size == 0 || format.group_size >= kernel.tile_k;
}

// What a streaming kernel takes of a case: few rows of one matrix, whole tiles in fixed turn.
GemmCase streamed(GemmCase c, const KernelConfig& kernel) {
  GemmProblem& p = c.problem;
  if (p.m > kernel.tile_m) p.m = 1 + p.m % kernel.tile_m;
  p.batch = std::min<std::int64_t>(p.batch, 1);
  c.options.claim.reset();
  if (c.options.scheduler && *c.options.scheduler > SchedulerKind::data_parallel) c.options.scheduler.reset();
  return c;
}

}  // namespace

GemmCase with_format(GemmCase c, const KernelConfig& kernel, int n) {
  if (kernel.schedule == KernelSchedule::streaming) c = streamed(std::move(c), kernel);
  if (kernel.type_b != DataType::int4) return c;
  std::vector<W4Format> formats;
  for (const W4Format& format : kFormats)
    if (takes(kernel, format)) formats.push_back(format);
  c.problem.w4 = formats[static_cast<std::size_t>(n) % formats.size()];
  return c;
}

void add_streaming(std::vector<GemmCase>& cases, const KernelConfig& kernel, int sms) {
  if (kernel.schedule != KernelSchedule::streaming) return;
  int n = 0;
  for (const std::int64_t strips : {2, 3, 4, 5, 7, 14, 1, 6}) {
    GemmCase c{.what = "about " + std::to_string(strips) + " strips an SM"};
    c.problem.m = 1 + 3 * n % kernel.tile_m;
    c.problem.n = strips * sms * kernel.tile_n - 8 * (n % 3);
    c.problem.k = std::array{2064, 160, 1200, 320, 592, 992, 1136, 256}[static_cast<std::size_t>(n)];
    c.problem.constant_b = n % 2 == 0;
    c.problem.epilogue.bias = n % 3 == 1 ? Bias::per_column : Bias::none;
    c.exactness = n % 2 == 0 ? bench::Exactness::exact : bench::Exactness::bounded;
    cases.push_back(with_format(std::move(c), kernel, n++));
  }
  for (std::int64_t m = 1; m <= kernel.tile_m; ++m) {
    GemmCase c{.what = std::to_string(m) + " rows"};
    c.problem.m = m;
    c.problem.n = 5 * kernel.tile_n + 8;
    c.problem.k = 80 * m;
    c.exactness = m % 2 == 0 ? bench::Exactness::exact : bench::Exactness::bounded;
    cases.push_back(with_format(std::move(c), kernel, n++));
  }
}

std::vector<std::byte> random_packed_weights(const GemmProblem& p, bool exact, std::uint64_t seed) {
  const std::int64_t matrices = matrices_b(p), bytes = packed_w4_bytes(p.n, p.k, p.w4);
  std::vector<std::byte> packed(matrices == 0 ? 0 : static_cast<std::size_t>((matrices - 1) * p.batch_stride_b + bytes));
  const std::int64_t group = p.w4.group_size == 0 ? p.k : p.w4.group_size, groups = p.k == 0 ? 0 : (p.k + group - 1) / group;
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(p.n * p.k / 2)), zeros(static_cast<std::size_t>(p.n * groups));
  std::vector<float> scales(static_cast<std::size_t>(p.n * groups));
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t limit) { return static_cast<int>(random() % limit); };
  PackedMatrix one(bytes);
  const PackW4Problem packing{.n = p.n, .k = p.k, .format = p.w4, .type = p.type_a, .type_scales = DataType::fp32};
  for (std::int64_t matrix = 0; matrix < matrices; ++matrix) {
    for (std::uint8_t& two : codes) two = static_cast<std::uint8_t>(random() >> 56);
    for (float& scale : scales)
      scale = exact ? static_cast<float>(1 + below(2)) : std::ldexp(static_cast<float>(4 + below(4)), below(3) - 6);
    for (std::uint8_t& zero : zeros) zero = static_cast<std::uint8_t>(below(17));
    check(pack_w4_on_cpu(
        packing,
        {.codes = codes.data(), .scales = scales.data(), .zeros = p.w4.zero_points ? zeros.data() : nullptr, .packed = one.data()}));
    std::copy_n(one.data(), bytes, packed.data() + matrix * p.batch_stride_b);
  }
  return packed;
}

GemmProblem dequantised(GemmProblem p) {
  const bool of_bytes = is_fp8(p.type_a);
  p.type_b = of_bytes ? DataType::fp32 : p.type_a;
  p.batch_stride_b = p.batch_stride_b == 0 ? 0 : p.n * p.k;
  if (!of_bytes) p.w4 = {};
  return p;
}

std::vector<std::byte> dequantised_weights(const GemmProblem& p, const std::vector<std::byte>& packed) {
  const std::int64_t matrix_bytes = p.n * p.k * size_bytes(dequantised(p).type_b);
  std::vector<std::byte> weights(static_cast<std::size_t>(matrices_b(p) * matrix_bytes));
  const std::int64_t bytes = packed_w4_bytes(p.n, p.k, p.w4);
  PackedMatrix one(bytes);
  for (std::int64_t matrix = 0; matrix < matrices_b(p); ++matrix) {
    std::copy_n(packed.data() + matrix * p.batch_stride_b, bytes, one.data());
    check(unpack_w4_on_cpu(p.n, p.k, p.w4, p.type_a, one.data(), weights.data() + matrix * matrix_bytes));
  }
  return weights;
}

}  // namespace sluice::gpu_tests
