// Which of its CTA's bins a sample belongs to.
#pragma once

#include <cstdint>

#include "arch/counting.cuh"
#include "core/histogram_config.hpp"
#include "kernel/histogram/histogram_params.hpp"

namespace sluice {

// Of samples that do not count, and of those whose bin another CTA counts, the number is at least bins_of_cta().
template <HistogramConfig config>
class SampleBins {
 public:
  SLUICE_DEVICE SampleBins(const HistogramParams& params, std::uint32_t range)
      : params_(params), shift_(params.range_shift), range_bits_(arch::rotate_right(range, params.range_shift)) {}

  SLUICE_DEVICE std::uint32_t of_word(const std::uint32_t (&words)[4], int sample) const {
    if constexpr (config.sample == HistogramSample::uint8)
      return of_integer(static_cast<std::int32_t>(words[sample / 4] >> (8 * (sample % 4)) & 0xff));
    else if constexpr (config.sample == HistogramSample::int32)
      return of_integer(static_cast<std::int32_t>(words[sample]));
    else
      return of_float(arch::as_float(static_cast<int>(words[sample])));
  }

  SLUICE_DEVICE std::uint32_t of_sample(const void* samples, int i) const {
    if constexpr (config.sample == HistogramSample::uint8)
      return of_integer(arch::load_global(static_cast<const std::uint8_t*>(samples) + i));
    else if constexpr (config.sample == HistogramSample::int32)
      return of_integer(arch::load_global(static_cast<const std::int32_t*>(samples) + i));
    else
      return of_float(arch::load_global(static_cast<const float*>(samples) + i));
  }

 private:
  // Bins modulo 2^32: what lies below the first is as far out as what lies beyond the last.
  SLUICE_DEVICE std::uint32_t of_integer(std::int32_t x) const {
    if (x < params_.least) x = params_.least;
    if (x > params_.greatest) x = params_.greatest;
    return mine(static_cast<std::uint32_t>(x) - static_cast<std::uint32_t>(params_.first));
  }

  SLUICE_DEVICE std::uint32_t of_float(float x) const {
    int bin = arch::truncate(arch::multiply(arch::subtract(x, params_.lower), params_.scale));
    if (bin < 0) bin = 0;
    if (bin > params_.greatest) bin = params_.greatest;
    if (!(x >= params_.least_float && x <= params_.greatest_float)) bin = -1;  // NaN, too
    return mine(static_cast<std::uint32_t>(bin));
  }

  // The low bits say whose the bin is. Turned to the top they are 0 for this CTA's, once its own number is taken away, and make the rest
  // too large otherwise.
  SLUICE_DEVICE std::uint32_t mine(std::uint32_t bin) const {
    if constexpr (!config.split) return bin;
    return arch::rotate_right(bin, shift_) ^ range_bits_;
  }

  const HistogramParams& params_;
  std::uint32_t shift_, range_bits_;
};

}  // namespace sluice
