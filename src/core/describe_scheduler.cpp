#include "core/describe_scheduler.hpp"

namespace sluice {

std::string describe_kind(const SchedulerParams& s) {
  std::string text = to_string(s.kind);
  if (s.kind == SchedulerKind::split_k) text += " " + std::to_string(s.splits);
  if (s.lead > 0) text += " lead " + std::to_string(s.lead);
  if (s.reduction == Reduction::separate) text += " in slices";
  if (s.reduction == Reduction::cluster) text += " in a cluster";
  if (s.kind == SchedulerKind::hybrid) text += " " + std::to_string(s.stream_k_tiles);
  if (s.stream_k_tiles > 0) text += " in " + std::to_string(s.stream_k_ranges) + (s.stream_k_ranges == 1 ? " range" : " ranges");
  if (s.stream_k_regions != 1) text += " of " + std::to_string(s.stream_k_regions) + " regions";
  if (s.claim == WorkClaim::ticket) text += ", by ticket";
  return text;
}

}  // namespace sluice
