// What L2 is told of lines of A and B. That they are to go last is nothing to tell it: rows of A were still there after 150 MB of weights
// had passed through, in the way of whatever else runs (docs/performance_log.md, 27 November 2026, the second part).
#pragma once

#include "arch/types.hpp"
#include "core/line_use.hpp"

namespace sluice {

constexpr arch::CachePolicy cache_policy(LineUse use) {
  return use == LineUse::now ? arch::CachePolicy::evict_first : arch::CachePolicy::evict_normal;
}

}  // namespace sluice
