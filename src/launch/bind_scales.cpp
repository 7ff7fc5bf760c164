#include "launch/bind_scales.hpp"

#include <cstdint>

#include "core/scale_layout.hpp"

namespace sluice {
namespace {

// Tiles begin at multiples of four vectors, unless a group begins where it likes.
bool come_in_runs(const float* data, const ScaleStrides& strides, std::int64_t vectors, bool tiles_begin_anywhere) {
  constexpr std::int64_t kWords = 4;  // in the 16 bytes that the copy engine takes
  const bool adjacent = strides.along_k && strides.block_shift == 0 && strides.vector == 1;
  return adjacent && !tiles_begin_anywhere && vectors % kWords == 0 && strides.k_block % kWords == 0 && strides.batch % kWords == 0 &&
         reinterpret_cast<std::uintptr_t>(data) % (kWords * sizeof(float)) == 0;
}

ScaleParams scales_of(const float* data, Scaling scaling, const ScaleStrides& strides, std::int64_t vectors, bool tiles_begin_anywhere) {
  if (scaling == Scaling::none) return {};
  return {.data = data,
          .strides = strides,
          .vectors = static_cast<std::int32_t>(vectors),
          .runs = come_in_runs(data, strides, vectors, tiles_begin_anywhere)};
}

}  // namespace

void bind_scales(const GemmProblem& p, const GemmArguments& arguments, bool swap, GemmParams& all) {
  MainloopParams& params = all.mainloop;
  (swap ? params.scale_q : params.scale_p) =
      scales_of(arguments.scale_a, p.scaling_a, scale_strides_a(p), p.m, p.grouping == Grouping::ragged);
  (swap ? params.scale_p : params.scale_q) = scales_of(arguments.scale_b, p.scaling_b, scale_strides_b(p), p.n, false);
  if (p.scaling_d != Scaling::none) all.epilogue.scale_d = {.data = arguments.scale_d, .strides = scale_strides_d(p)};
}

}  // namespace sluice
