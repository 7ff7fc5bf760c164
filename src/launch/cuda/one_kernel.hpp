// Starting a kernel of plain CTAs, which passes over data once: those of quantize(), pack_w4(), permute_columns() and histogram().
#pragma once

#include <cstddef>

#include "sluice/error.hpp"
#include "sluice/run.hpp"

namespace sluice {

// Whether the current device runs the kernels at all.
Status check_hopper();
// Of the current device; 0 if there is none.
int current_sm_count();

struct PlainLaunch {
  const void* kernel = nullptr;
  int ctas = 0;
  int threads_per_cta = 0;
  int shared_memory_bytes = 0;
};
// The kernel waits for its predecessor itself, before it touches what that writes: what overlaps is launch and set-up.
Status enqueue(const PlainLaunch& launch, void* params, Stream stream);

}  // namespace sluice
