// What a launch passes to a traced kernel beside what every kernel gets.
#pragma once

#include <cstdint>

#include "core/trace_layout.hpp"
#include "kernel/gemm_params.cuh"

namespace sluice {

struct TraceParams {
  TraceTrack* tracks;
  TraceRecord* records;
  std::int32_t tiles_per_track;
};

// A kernel that is not traced takes the first part of it.
struct TracedGemmParams : GemmParams {
  TraceParams trace;
};

}  // namespace sluice
