#include "launch/bind_scales.hpp"

#include "core/scale_layout.hpp"

namespace sluice {
namespace {

ScaleParams scales_of(const float* data, Scaling scaling, const ScaleStrides& strides, std::int64_t vectors) {
  if (scaling == Scaling::none) return {};
  return {.data = data, .strides = strides, .vectors = static_cast<std::int32_t>(vectors)};
}

}  // namespace

void bind_scales(const GemmProblem& p, const GemmArguments& arguments, bool swap, MainloopParams& params) {
  (swap ? params.scale_q : params.scale_p) = scales_of(arguments.scale_a, p.scaling_a, scale_strides_a(p), p.m);
  (swap ? params.scale_p : params.scale_q) = scales_of(arguments.scale_b, p.scaling_b, scale_strides_b(p), p.n);
}

}  // namespace sluice
