#include "simulator/timeline.hpp"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "core/kernel_layout.hpp"
#include "core/occupancy.hpp"
#include "scheduler/scheduler.hpp"

namespace sluice {
namespace {

// In whole main loops. A tile without any k-tiles still takes its turn.
double cost(const SchedulerParams& params, const WorkTile& tile) {
  return params.k_tiles == 0 ? 1.0 : static_cast<double>(tile.k_end - tile.k_begin) / params.k_tiles;
}

// Where a unit's work comes from.
class Source {
 public:
  virtual ~Source() = default;
  virtual bool exhausted() = 0;
  virtual bool next(WorkTile& tile) = 0;
};

class Dealt final : public Source {
 public:
  Dealt(const SchedulerParams& params, std::int32_t unit, std::int32_t units) : work_(params, unit, units) {}
  bool exhausted() override { return work_.done(); }
  bool next(WorkTile& tile) override { return work_.next(tile); }

 private:
  AnyScheduler work_;
};

// All units draw from one list: one worker in the place of all.
class Drawn final : public Source {
 public:
  explicit Drawn(AnyScheduler& tickets) : tickets_(tickets) {}
  bool exhausted() override { return tickets_.done(); }
  bool next(WorkTile& tile) override { return tickets_.next(tile); }

 private:
  AnyScheduler& tickets_;
};

// A CTA or cluster. Its workers take its pieces in turn, and each must be done with one before it takes another.
struct Unit {
  std::int32_t number = 0;
  std::size_t place = 0;
  std::unique_ptr<Source> source;
  std::int64_t taken = 0;
  std::int64_t open = 0;  // pieces that are not done
  std::vector<bool> busy;

  std::size_t turn() const { return static_cast<std::size_t>(taken) % busy.size(); }
};

// An SM, or the SMs of a cluster, with the units that are on it. They share its tensor cores: a main loop runs while the others load or
// write out, so pieces follow one another, each unit's in turn.
struct Place {
  std::list<Unit> units;
  bool multiplying = false;
};

class Timeline {
 public:
  Timeline(const Plan& plan, Simulation& result)
      : plan_(plan),
        result_(result),
        units_(plan.worker_count / result.workers_per_cta),
        tickets_(plan.scheduler, 0, 1),
        places_(static_cast<std::size_t>(cluster_places(plan.device, plan.kernel))) {}

  Status play(int resident_units) {
    const std::size_t residents = static_cast<std::size_t>(clusters_that_fit(plan_.device, plan_.kernel)) / places_.size();
    const std::int32_t at_once = resident_units > 0 ? std::min(resident_units, units_) : units_;
    for (std::size_t round = 0; round < residents; ++round)
      for (std::size_t place = 0; place < places_.size() && launched_ < at_once; ++place) launch_on(place);
    for (std::size_t place = 0; place < places_.size(); ++place) go_on(place, 0);
    while (!events_.empty()) {
      const auto [now, place, piece] = events_.top();
      events_.pop();
      places_[place].multiplying = false;
      hand_over(piece, now);
      go_on(place, now);
      while (!woken_.empty()) {
        const std::size_t next = woken_.front();
        woken_.pop_front();
        go_on(next, now);
      }
    }
    for (const Place& place : places_)
      if (!place.units.empty())
        return Error{ErrorCode::internal, "with " + std::to_string(at_once) + " clusters resident, cluster " +
                                              std::to_string(place.units.front().number) +
                                              " waits for ever; report this plan as a defect, or claim by ticket"};
    return Nothing{};
  }

 private:
  void launch_on(std::size_t place) {
    Unit unit{.number = launched_++, .place = place, .busy = std::vector<bool>(static_cast<std::size_t>(result_.workers_per_cta))};
    if (plan_.scheduler.claim == WorkClaim::ticket)
      unit.source = std::make_unique<Drawn>(tickets_);
    else
      unit.source = std::make_unique<Dealt>(plan_.scheduler, unit.number, units_);
    places_[place].units.push_back(std::move(unit));
  }

  // Whoever has finished makes room, and if the tensor cores are free the next piece begins.
  void go_on(std::size_t place, double now) {
    std::list<Unit>& units = places_[place].units;
    for (auto unit = units.begin(); unit != units.end();) {
      if (unit->open > 0 || !unit->source->exhausted()) {
        ++unit;
        continue;
      }
      if (launched_ < units_) launch_on(place);  // at the end of the list, and first: the new one may have nothing to do either
      unit = units.erase(unit);
    }
    if (places_[place].multiplying) return;
    for (auto unit = units.begin(); unit != units.end(); ++unit) {
      if (unit->busy[unit->turn()] || unit->source->exhausted()) continue;
      begin_piece(*unit, now);
      units.splice(units.end(), units, unit);
      return;
    }
  }

  void begin_piece(Unit& unit, double now) {
    WorkTile tile;
    unit.source->next(tile);
    const std::size_t worker = unit.turn();
    unit.busy[worker] = true;
    ++unit.open;
    ++unit.taken;
    const double end = now + cost(plan_.scheduler, tile);
    const int sm = static_cast<int>(unit.place) * cluster_size(plan_.kernel);
    result_.pieces.push_back({unit.number + static_cast<int>(worker) * units_, sm, tile, now, end, end});
    owners_.push_back({&unit, worker});
    places_[unit.place].multiplying = true;
    events_.emplace(end, unit.place, result_.pieces.size() - 1);
  }

  // The main loop is over. A whole tile is done with it, and a piece that leaves its sums for another; the last piece of a tile is when all
  // others have left theirs.
  void hand_over(std::size_t piece, double now) {
    const WorkTile& tile = result_.pieces[piece].tile;
    if (tile.peers <= 1) return finish(piece, now);
    Meeting& meeting = meetings_[tile.split_tile];
    if (tile.peer + 1 < tile.peers) {
      ++meeting.left;
      finish(piece, now);
    } else {
      meeting.last = piece;
    }
    if (meeting.last && meeting.left == tile.peers - 1) finish(*meeting.last, now);
  }

  void finish(std::size_t piece, double now) {
    result_.pieces[piece].done = now;
    const auto [unit, worker] = owners_[piece];
    unit->busy[worker] = false;
    --unit->open;
    woken_.push_back(unit->place);
  }

  struct Meeting {  // of the pieces of a tile
    std::int32_t left = 0;
    std::optional<std::size_t> last;  // whose main loop is over
  };
  struct Owner {
    Unit* unit;
    std::size_t worker;
  };
  using Event = std::tuple<double, std::size_t, std::size_t>;  // when a main loop ends, where, and which piece's

  const Plan& plan_;
  Simulation& result_;
  std::int32_t units_;
  std::int32_t launched_ = 0;
  AnyScheduler tickets_;
  std::vector<Place> places_;
  std::vector<Owner> owners_;  // of the pieces
  std::map<std::int32_t, Meeting> meetings_;
  std::deque<std::size_t> woken_;  // places where a worker is free again
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace

Status play(const Plan& plan, int resident_units, Simulation& result) {
  if (Status s = Timeline(plan, result).play(resident_units); !s) return s;
  std::stable_sort(result.pieces.begin(), result.pieces.end(), [](const SimulatedPiece& x, const SimulatedPiece& y) {
    return std::tie(x.worker, x.begin) < std::tie(y.worker, y.begin);
  });
  return Nothing{};
}

}  // namespace sluice
