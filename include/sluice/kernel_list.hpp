// The compiled kernels, and what each takes up.
#pragma once

#include <vector>

#include "sluice/kernel_config.hpp"

namespace sluice {

// What one CTA of a kernel takes up on an SM.
struct KernelResources {
  int stages = 0;  // of the ring of k-tiles in shared memory
  int shared_memory_bytes = 0;
  int threads = 0;
  bool joins_pieces = false;             // can compute tiles in pieces: split-K, stream-K, hybrid
  bool computes_groups = false;          // of rows that the device counts (Grouping)
  bool computes_groups_along_k = false;  // K contiguous in neither operand, or FP8 with k-tiles of 128
  bool computes_general_groups = false;  // compiled for them, too

  bool operator==(const KernelResources&) const = default;
};
KernelResources resources(const KernelConfig& config);

// The kernels this library was built from, in the order of kernel_list.def.
const std::vector<KernelConfig>& kernel_list();

}  // namespace sluice
