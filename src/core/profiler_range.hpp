// A range with a name on a profiler's timeline (NVTX), as long as the object lives. In builds without CUDA, nothing.
#pragma once

#ifdef SLUICE_NVTX
#include <nvtx3/nvToolsExt.h>
#endif

namespace sluice {

class ProfilerRange {
 public:
#ifdef SLUICE_NVTX
  explicit ProfilerRange(const char* name) { nvtxRangePushA(name); }
  ~ProfilerRange() { nvtxRangePop(); }
#else
  explicit ProfilerRange(const char*) {}
  ~ProfilerRange() = default;
#endif
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;
};

}  // namespace sluice
