#include "core/check_group_sizes.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/groups.hpp"
#include "core/scale_layout.hpp"

namespace sluice {

Status check_group_sizes(const GemmProblem& p, const std::int32_t* host_sizes) {
  if (!is_grouped_by_scale_blocks(p) || host_sizes == nullptr) return Nothing{};
  for (std::int64_t i = 0; i < group_numbers(p); ++i) {
    const std::int64_t number =
        std::max<std::int64_t>(0, std::min<std::int64_t>(host_sizes[i], p.k));  // k is a multiple, and what is outside ends with it
    if (number % kScaleBlockElems != 0)
      return Error{ErrorCode::invalid_argument,
                   "groups[" + std::to_string(i) + "] = " + std::to_string(number) + " with groups along k of " + to_string(p.type_a) +
                       ", which begin and end at multiples of 128, where their scales do; fill them up with zeros, here to " +
                       std::to_string((number / kScaleBlockElems + 1) * kScaleBlockElems)};
  }
  return Nothing{};
}

}  // namespace sluice
