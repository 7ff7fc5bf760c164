#include "launch/trace_buffer.hpp"

#include <cstdint>
#include <string>

#include "core/groups.hpp"
#include "core/trace_layout.hpp"

namespace sluice {

Error not_traced(const KernelConfig& config) {
  std::string names;
  for (const KernelConfig& traced : traced_kernel_list()) names += (names.empty() ? "" : ", ") + name(traced);
  return {ErrorCode::unsupported, "kernel " + name(config) + " is not compiled with a recorder; plan with one of these: " + names};
}

Result<TraceParams> bind_trace(const Plan& plan, TraceBuffer buffer) {
  if (is_general(plan.problem))
    return Error{ErrorCode::unsupported,
                 "grouping = general cannot be traced: no kernel for such groups is compiled with a recorder; trace a "
                 "product of one group's size"};
  constexpr std::uintptr_t kAlignmentBytes = alignof(TraceRecord);
  if (buffer.data == nullptr || reinterpret_cast<std::uintptr_t>(buffer.data) % kAlignmentBytes != 0)
    return Error{ErrorCode::misaligned, "the trace buffer is null or not aligned to " + std::to_string(kAlignmentBytes) + " bytes"};
  const int tiles = traced_tiles_per_track(plan.grid_ctas, buffer.bytes);
  if (tiles < 1)
    return Error{ErrorCode::workspace_too_small, "the trace buffer has " + std::to_string(buffer.bytes) +
                                                     " bytes; one tile for each role of " + std::to_string(plan.grid_ctas) +
                                                     " CTAs needs " + std::to_string(trace_layout_bytes(plan.grid_ctas, 1)) +
                                                     " (trace_bytes())"};
  auto* const bytes = static_cast<std::byte*>(buffer.data);
  return TraceParams{.tracks = reinterpret_cast<TraceTrack*>(bytes),
                     .records = reinterpret_cast<TraceRecord*>(bytes + trace_records_offset(plan.grid_ctas)),
                     .tiles_per_track = tiles};
}

}  // namespace sluice
