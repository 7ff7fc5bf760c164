#include "bench/trace_operands.hpp"

#include <algorithm>

namespace sluice::bench {
namespace {

std::int64_t span(std::int64_t vectors, std::int64_t leading, std::int64_t batch, std::int64_t batch_stride) {
  return vectors * leading + (batch - 1) * std::max<std::int64_t>(batch_stride, 0);
}

}  // namespace

OperandElems operand_elems(const GemmProblem& p) {
  return {.a = span(p.layout_a == Layout::row_major ? p.m : p.k, p.lda, p.batch, p.batch_stride_a),
          .b = span(p.layout_b == Layout::row_major ? p.k : p.n, p.ldb, p.batch, p.batch_stride_b),
          .c = p.epilogue.beta != 0.0f ? span(p.m, p.ldc, p.batch, p.batch_stride_c) : 0,
          .d = span(p.m, p.ldd, p.batch, p.batch_stride_d),
          .bias = bias_elems(p),
          .scale_a = scale_elems_a(p),
          .scale_b = scale_elems_b(p),
          .scale_d = scale_elems_d(p)};
}

}  // namespace sluice::bench
