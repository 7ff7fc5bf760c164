// Writes a schedule down, item by item, for the model of how pieces meet (pieces.pml).
//
// schedule_table KIND CLAIM TILES K_TILES UNITS SPLITS STREAM_K_TILES REGIONS: one line with what check_scheduler() says, one for each
// item.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/check_scheduler.hpp"
#include "scheduler/single_items.hpp"
#include "scheduler/workspace.hpp"

namespace sluice {
namespace {

int number(const char* text) { return std::atoi(text); }

int run(char** arguments) {
  const auto kind = parse_scheduler(arguments[0]);
  const auto claim = parse_work_claim(arguments[1]);
  if (!kind || !claim) {
    std::fprintf(stderr, "schedule_table: no scheduler '%s' with claim '%s'\n", arguments[0], arguments[1]);
    return 2;
  }
  SchedulerParams p{.kind = *kind, .tiles_m = number(arguments[2]), .tiles_n = 1, .k_tiles = number(arguments[3]), .claim = *claim};
  const int units = number(arguments[4]);
  p.splits = number(arguments[5]);
  p.stream_k_tiles = number(arguments[6]);
  p.stream_k_regions = number(arguments[7]);
  if (p.kind == SchedulerKind::stream_k || p.kind == SchedulerKind::hybrid) p.stream_k_ranges = units;

  const Status status = check_scheduler(p, units);
  std::printf("%s\n", status ? "permitted" : status.error().message.c_str());
  for (int item = 0; item < item_count(p); ++item) {
    const WorkTile w = item_at(p, item);
    const int place = w.peers > 1 ? deposit_place(w, 0, deposit_step(p)) : 0, step = w.peers > 1 ? deposit_step(p) : 0;
    std::printf("%d %d %d %d %d %d\n", w.peers, w.peer, w.tile_m, w.split_tile, place, step);
  }
  return 0;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  constexpr int kArguments = 8;
  if (argc != 1 + kArguments) {
    std::fprintf(stderr, "usage: schedule_table KIND CLAIM TILES K_TILES UNITS SPLITS STREAM_K_TILES REGIONS\n");
    return 2;
  }
  return sluice::run(argv + 1);
}
