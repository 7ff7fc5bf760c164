#include "reference/dequantised.hpp"

#include <atomic>
#include <cstddef>

#include "core/check_arguments.hpp"
#include "reference/parallel.hpp"
#include "reference/w4_weight.hpp"

namespace sluice {
namespace {

// Whether any has been rounded.
bool dequantise(const GemmProblem& p, const void* packed, std::uint16_t* to, int threads) {
  std::atomic<bool> rounded{false};
  parallel(p.n, thread_count(threads, p.n), [&](auto& next, int) {
    for (std::int64_t n = next(); n >= 0; n = next())
      for (std::int64_t k = 0; k < p.k; ++k) {
        const float exact = w4_weight(packed, n, k, w4_slabs(p.k), p.w4, p.type_a);
        const std::uint16_t bits = to_16_bits(exact, p.type_a);
        if (from_16_bits(bits, p.type_a) != exact) rounded.store(true, std::memory_order_relaxed);
        to[n * p.k + k] = bits;
      }
  });
  return rounded;
}

}  // namespace

Dequantised::Dequantised(GemmProblem& p, GemmArguments& arguments, int threads) {
  if (p.type_b != DataType::int4) return;
  if (!is_empty(p) && reads_a_and_b(p)) {
    const std::int64_t matrices = p.batch_stride_b == 0 ? 1 : p.batch;
    weights_.resize(static_cast<std::size_t>(matrices * p.n * p.k));
    bool rounded = false;
    for (std::int64_t b = 0; b < matrices; ++b)
      rounded |= dequantise(p, static_cast<const std::byte*>(arguments.b) + b * p.batch_stride_b, weights_.data() + b * p.n * p.k, threads);
    constexpr double kHalfStepBf16 = 0x1p-8, kHalfStepFp16 = 0x1p-11;  // of numbers just above a power of two
    if (rounded) rounding_ = p.type_a == DataType::bf16 ? kHalfStepBf16 : kHalfStepFp16;
    arguments.b = weights_.data();
  }
  p.type_b = p.type_a;
  p.batch_stride_b = p.batch_stride_b == 0 ? 0 : p.n * p.k;
  p.w4 = {};
}

}  // namespace sluice
