#include "launch/bind_w4.hpp"

#include <bit>
#include <cstdint>

#include "core/w4_layout.hpp"
#include "core/w4_packing.hpp"

namespace sluice {
namespace {

constexpr int kVectorBytes = 16;
constexpr int kCodesPerWord = 8;
constexpr int kNoShift = 31;  // all of K is group 0

bool aligned(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % kVectorBytes == 0; }

W4Strides words_of(const PackW4Problem& p) {
  switch (p.source) {
    case W4Source::gptq:
      return {.column = 1, .along_k = p.n};
    case W4Source::awq:
      return {.column = 1, .along_k = p.n / kCodesPerWord};
    case W4Source::plain:
      break;
  }
  return {.column = p.k / kCodesPerWord, .along_k = 1};
}

}  // namespace

BoundPackW4 bind(const PackW4Problem& p, const PackW4Arguments& arguments) {
  const bool plain = p.source == W4Source::plain;
  const W4Strides groups = plain ? W4Strides{.column = w4_groups(p.k, p.format), .along_k = 1} : W4Strides{.column = 1, .along_k = p.n};
  const std::int64_t blocks = w4_blocks(p.n), slabs = w4_slabs(p.k);
  return {.params = {.codes = static_cast<const std::uint32_t*>(arguments.codes),
                     .scales = arguments.scales,
                     .zeros = arguments.zeros,
                     .order = arguments.order,
                     .packed = static_cast<std::uint8_t*>(arguments.packed),
                     .words = words_of(p),
                     .groups = groups,
                     .n = static_cast<std::int32_t>(p.n),
                     .k = static_cast<std::int32_t>(p.k),
                     .blocks = static_cast<std::int32_t>(blocks),
                     .slabs = static_cast<std::int32_t>(slabs),
                     .slab_bytes = w4_slab_bytes(p.format),
                     .scales_per_slab = w4_groups_per_slab(p.format),
                     .elems_per_scale = w4_elems_per_scale(p.format),
                     .group_shift = p.format.group_size == 0 ? kNoShift : std::countr_zero(static_cast<unsigned>(p.format.group_size)),
                     .format = p.format,
                     .source = p.source,
                     .type = p.type,
                     .type_scales = p.type_scales,
                     .less_one = p.source == W4Source::gptq && p.zeros_less_one ? 1 : 0,
                     .by_vectors = plain && aligned(arguments.codes) && p.k / 2 % kVectorBytes == 0},
          .grid_ctas = static_cast<int>(blocks * slabs)};
}

BoundPermuteColumns bind(const PermuteColumnsProblem& p, const void* from, const std::int32_t* order, void* to) {
  return {.params = {.from = static_cast<const std::uint16_t*>(from),
                     .order = order,
                     .to = static_cast<std::uint16_t*>(to),
                     .ld_from = p.ld_from,
                     .ld_to = p.ld_to,
                     .m = static_cast<std::int32_t>(p.m),
                     .k = static_cast<std::int32_t>(p.k),
                     .strips = static_cast<std::int32_t>(permute_strips(p.k)),
                     .by_vectors = aligned(to) && p.ld_to % kPermuteElems == 0 && p.k % kPermuteElems == 0},
          .grid_ctas = static_cast<int>(permute_ctas(p))};
}

}  // namespace sluice
