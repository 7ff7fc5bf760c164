#include "launch/bind_quantize.hpp"

#include <cstdint>
#include <utility>

#include "core/quantize_config.hpp"

namespace sluice {
namespace {

bool aligned(const void* pointer, int bytes) { return reinterpret_cast<std::uintptr_t>(pointer) % static_cast<std::uintptr_t>(bytes) == 0; }

bool moves_by_vectors(const QuantizeProblem& p, const QuantizeArguments& arguments) {
  const int vector = vector_elems(p.type_x);  // of them make 16 bytes of x, and as many of q as there are
  const bool y_fits = p.input == QuantizeInput::plain || (aligned(arguments.y, kVectorBytes) && p.ldy % vector == 0);
  return aligned(arguments.x, kVectorBytes) && aligned(arguments.q, vector) && p.ldx % vector == 0 && p.ldq % vector == 0 && y_fits &&
         p.k % vector == 0;
}

std::int64_t up(std::int64_t extent, std::int64_t size) { return (extent + size - 1) / size; }

// Whether strip follows strip and scale follows scale from row to row, so that all rows may be seen as one. Then no thread is without work
// because strips of a row do not suffice for it.
bool is_one_row(const QuantizeProblem& p) {
  constexpr std::int64_t kLargestRow = std::int64_t{1} << 30;
  const bool dense = p.k % kStripElems == 0 && p.ldx == p.k && p.ldq == p.k && (p.input == QuantizeInput::plain || p.ldy == p.k);
  return p.scaling == Scaling::per_vector_128 && p.scale_layout == Layout::row_major && p.ld_scale == p.k / kStripElems && dense &&
         p.m * p.k <= kLargestRow;
}

QuantizeProblem as_one_row(QuantizeProblem p) {
  p.k *= std::exchange(p.m, 1);
  p.ldx = p.ldy = p.ldq = p.k;
  p.ld_scale = p.k / kStripElems;
  return p;
}

}  // namespace

BoundQuantize bind(const QuantizeProblem& problem, const QuantizeArguments& arguments, int sm_count) {
  const QuantizeProblem p = is_one_row(problem) ? as_one_row(problem) : problem;
  const QuantizeConfig config = quantize_config(p);
  const std::int64_t strips_in_row = up(p.k, kStripElems);
  const std::int64_t ctas = p.scaling == Scaling::per_vector ? p.m
                            : p.scaling == Scaling::per_block_128
                                ? up(p.m, kScaleBlockElems) * strips_in_row
                                : up(p.m * up(strips_in_row, strips_per_thread(config)), teams_per_cta(config));
  return {.params = {.x = arguments.x,
                     .y = arguments.y,
                     .q = static_cast<std::uint8_t*>(arguments.q),
                     .scale = arguments.scale,
                     .ldx = static_cast<std::uint32_t>(p.ldx),
                     .ldy = static_cast<std::uint32_t>(p.ldy),
                     .ldq = static_cast<std::uint32_t>(p.ldq),
                     .scales = scale_strides(p),
                     .m = static_cast<std::int32_t>(p.m),
                     .k = static_cast<std::int32_t>(p.k),
                     .strips_in_row = static_cast<std::int32_t>(strips_in_row),
                     .waiting_from = sm_count,
                     .waiting_to = static_cast<std::int32_t>(end_of_waiting(config, ctas, sm_count)),
                     .by_vectors = moves_by_vectors(p, arguments),
                     .power_of_two_scales = p.power_of_two_scales},
          .grid_ctas = static_cast<int>(ctas)};
}

}  // namespace sluice
