#include "reference/dequantised.hpp"

#include <atomic>
#include <cstddef>

#include "core/check_arguments.hpp"
#include "reference/parallel.hpp"
#include "reference/w4_weight.hpp"

namespace sluice {
namespace {

// Calls store(i, weight) with each weight, from several threads.
template <class Store>
void for_each_weight(const GemmProblem& p, const void* packed, int threads, const Store& store) {
  parallel(p.n, thread_count(threads, p.n), [&](auto& next, int) {
    for (std::int64_t n = next(); n >= 0; n = next())
      for (std::int64_t k = 0; k < p.k; ++k) store(n * p.k + k, w4_weight(packed, n, k, w4_slabs(p.k), p.w4, p.type_a));
  });
}

// Whether any has been rounded.
bool dequantise(const GemmProblem& p, const void* packed, std::uint16_t* to, int threads) {
  std::atomic<bool> rounded{false};
  for_each_weight(p, packed, threads, [&](std::int64_t i, float exact) {
    to[i] = to_16_bits(exact, p.type_a);
    if (from_16_bits(to[i], p.type_a) != exact) rounded.store(true, std::memory_order_relaxed);
  });
  return rounded;
}

}  // namespace

Dequantised::Dequantised(GemmProblem& p, GemmArguments& arguments, int threads) {
  if (p.type_b != DataType::int4) return;
  short_sum_elems_ = w4_elems_per_scale(p.w4);
  if (!is_empty(p) && reads_a_and_b(p)) {
    const std::int64_t matrices = p.batch_stride_b == 0 ? 1 : p.batch;
    const auto count = static_cast<std::size_t>(matrices * p.n * p.k);
    const auto matrix = [&](std::int64_t b) { return static_cast<const std::byte*>(arguments.b) + b * p.batch_stride_b; };
    const void* whole;
    if (is_fp8(p.type_a)) {
      exact_weights_.resize(count);
      for (std::int64_t b = 0; b < matrices; ++b)
        for_each_weight(p, matrix(b), threads,
                        [to = exact_weights_.data() + b * p.n * p.k](std::int64_t i, float weight) { to[i] = weight; });
      whole = exact_weights_.data();
    } else {
      weights_.resize(count);
      bool rounded = false;
      for (std::int64_t b = 0; b < matrices; ++b) rounded |= dequantise(p, matrix(b), weights_.data() + b * p.n * p.k, threads);
      constexpr double kHalfStepBf16 = 0x1p-8, kHalfStepFp16 = 0x1p-11;  // of numbers just above a power of two
      if (rounded) rounding_ = p.type_a == DataType::bf16 ? kHalfStepBf16 : kHalfStepFp16;
      whole = weights_.data();
    }
    arguments.b = whole;
  }
  p.type_b = is_fp8(p.type_a) ? DataType::fp32 : p.type_a;
  p.batch_stride_b = p.batch_stride_b == 0 ? 0 : p.n * p.k;
  p.w4 = {};
}

}  // namespace sluice
