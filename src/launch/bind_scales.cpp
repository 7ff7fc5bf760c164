#include "launch/bind_scales.hpp"

#include <cstdint>

#include "core/scale_layout.hpp"

namespace sluice {

void bind_scales(const GemmProblem& p, const GemmArguments& arguments, bool swap, GemmParams& all) {
  MainloopParams& params = all.mainloop;
  (swap ? params.scale_q : params.scale_p) =
      scales_of(arguments.scale_a, p.scaling_a, scale_strides_a(p), p.m, p.grouping == Grouping::ragged);
  (swap ? params.scale_p : params.scale_q) = scales_of(arguments.scale_b, p.scaling_b, scale_strides_b(p), p.n, false);
  if (p.scaling_d != Scaling::none) all.epilogue.scale_d = {.data = arguments.scale_d, .strides = scale_strides_d(p)};
}

}  // namespace sluice
