// Every way to share out work: schedules, claims, and how pieces meet, on kernels of every kind.
#pragma once

#include <string>
#include <vector>

#include "gemm_case.hpp"

namespace sluice::gpu_tests {

struct Way {
  KernelConfig kernel;
  GemmCase gemm_case;

  std::string title() const { return name(kernel) + ", " + gemm_case.what; }
};

// Enough tiles, or pieces, for every SM of the largest Hopper; `small`: a few tiles, so that a run takes microseconds.
std::vector<Way> all_ways(bool small);

}  // namespace sluice::gpu_tests
