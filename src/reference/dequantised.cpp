#include "reference/dequantised.hpp"

#include <cstddef>
#include <cstring>

#include "core/check_arguments.hpp"
#include "core/w4_layout.hpp"
#include "reference/number_conversion.hpp"
#include "reference/parallel.hpp"

namespace sluice {
namespace {

std::uint16_t weight(const std::byte* slab, int c, int k, const W4Format& format, DataType type) {
  const int group = format.group_size > 0 && format.group_size < kW4SlabElems ? k / format.group_size : 0;
  const W4CodePlace place = w4_code_place(c, k);
  const int byte = std::to_integer<int>(slab[place.byte]), code = place.high ? byte >> 4 : byte & 15;
  const int zero = format.zero_points ? std::to_integer<int>(slab[w4_zero_byte(c, group, format)]) : kW4MiddleCode;
  std::uint16_t bits;
  std::memcpy(&bits, slab + w4_scale_byte(c, group), sizeof bits);
  const float exact = static_cast<float>(code - zero) * (type == DataType::bf16 ? bf16_to_float(bits) : fp16_to_float(bits));
  return type == DataType::bf16 ? float_to_bf16(exact) : float_to_fp16(exact);
}

void dequantise(const GemmProblem& p, const std::byte* packed, std::uint16_t* to, int threads) {
  parallel(p.n, thread_count(threads, p.n), [&](auto& next, int) {
    for (std::int64_t n = next(); n >= 0; n = next())
      for (std::int64_t k = 0; k < p.k; ++k)
        to[n * p.k + k] = weight(packed + w4_slab_offset(n, k, w4_slabs(p.k), p.w4), static_cast<int>(n % kW4BlockColumns),
                                 static_cast<int>(k % kW4SlabElems), p.w4, p.type_a);
  });
}

}  // namespace

Dequantised::Dequantised(GemmProblem& p, GemmArguments& arguments, int threads) {
  if (p.type_b != DataType::int4) return;
  if (!is_empty(p) && reads_a_and_b(p)) {
    const std::int64_t matrices = p.batch_stride_b == 0 ? 1 : p.batch;
    weights_.resize(static_cast<std::size_t>(matrices * p.n * p.k));
    for (std::int64_t b = 0; b < matrices; ++b)
      dequantise(p, static_cast<const std::byte*>(arguments.b) + b * p.batch_stride_b, weights_.data() + b * p.n * p.k, threads);
    arguments.b = weights_.data();
  }
  p.type_b = p.type_a;
  p.batch_stride_b = p.batch_stride_b == 0 ? 0 : p.n * p.k;
  p.w4 = {};
}

}  // namespace sluice
