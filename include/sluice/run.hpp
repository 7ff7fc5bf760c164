// Carrying a plan out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "sluice/backend.hpp"
#include "sluice/error.hpp"
#include "sluice/plan_value.hpp"

struct CUstream_st;

namespace sluice {

using Stream = CUstream_st*;  // cudaStream_t, without the CUDA headers
struct GroupArguments;

struct GemmArguments {
  const void* a = nullptr;
  const void* b = nullptr;
  const void* c = nullptr;  // needed when beta != 0; may be d
  void* d = nullptr;
  const void* bias = nullptr;      // needed when the epilogue has one
  const float* scale_a = nullptr;  // needed when the problem has scales, aligned to 4 bytes
  const float* scale_b = nullptr;
  float* scale_d = nullptr;              // read with per_tensor, written with per_vector_128
  const std::int32_t* groups = nullptr;  // needed when the problem is grouped: sizes, see Grouping. As the others, in device memory
  const GroupArguments* group_arguments = nullptr;  // of general groups: `batch` of them, and then nothing else
};

// Once for each workspace, before the first plan uses it: clears the flags in its first 64 KiB. Every run leaves them cleared, whatever
// plans follow one another in the workspace, so that nothing need be done between runs or in a graph. Errors: a null workspace, CUDA
// errors.
Status prepare_workspace(void* workspace, std::size_t workspace_bytes, Stream stream);

// Enqueues the plan on `stream` of the current device: no allocation, no synchronisation, no hidden state. Safe from many threads,
// legal during stream capture. `workspace` is device memory of at least plan.workspace_bytes, aligned to 256 bytes and
// prepared, that nothing else uses until the work is done; it may be null when the plan needs none.
// Errors: null or misaligned pointers, workspace too small, a device that is not Hopper or smaller than the planned one, CUDA errors.
Status run(const Plan& plan, const GemmArguments& arguments, void* workspace, std::size_t workspace_bytes, Stream stream);

// Called now and then with the share of the work done, from 0 to 1.
using Progress = std::function<void(double done)>;

// The same work on the CPU, in host memory, by the plan's own division: each work tile is computed by one thread, k-tile by k-tile,
// with the slow and independent reference arithmetic. `threads` of 0 takes all cores.
Status run_on_cpu(const Plan& plan, const GemmArguments& host_arguments, int threads = 0, const Progress& progress = {});

// True if this build has the CUDA kernels in it.
bool built_with_cuda();

}  // namespace sluice
