// What L2 is told of lines of A and B.
#pragma once

#include "arch/types.hpp"
#include "core/line_use.hpp"

namespace sluice {

constexpr arch::CachePolicy cache_policy(LineUse use) {
  if (use == LineUse::again) return arch::CachePolicy::evict_normal;
  return use == LineUse::now ? arch::CachePolicy::evict_first : arch::CachePolicy::evict_last;
}

}  // namespace sluice
