#include "bench/timing.hpp"

#include <algorithm>
#include <numeric>

#include "bench/sizing.hpp"
#include "bench/statistics.hpp"

namespace sluice::bench {
namespace {

constexpr double kSearchGraphUs = 500;  // while the fastest is searched
constexpr int kFinalists = 3;

// Indices of `us`, smallest first.
std::vector<std::size_t> order_of(const std::vector<double>& us) {
  std::vector<std::size_t> order(us.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) { return us[x] < us[y]; });
  return order;
}

// Of so many replays in a turn, those whose time counts: by then the clock is as this competitor leaves it.
int timed_of(int replays) { return (replays + 2) / 3; }

void launch(const Graph& graph, int times, cudaStream_t stream) {
  for (int i = 0; i < times; ++i) graph.launch(stream);
}

// Once. How many replays a turn of so many microseconds holds; 0: one.
int warm_up(const Graph& graph, double turn_us, cudaStream_t stream) {
  const DeviceEvent begin, end;
  begin.record(stream);
  graph.launch(stream);
  end.record(stream);
  if (turn_us <= 0) return 1;
  check(cudaStreamSynchronize(stream), "waiting for a first replay");
  return std::max(1, static_cast<int>(turn_us / begin.us_until(end)));
}

}  // namespace

std::vector<const Graph*> pointers(const std::vector<Graph>& graphs) {
  std::vector<const Graph*> all;
  all.reserve(graphs.size());
  for (const Graph& graph : graphs) all.push_back(&graph);
  return all;
}

double estimate_us(const Enqueue& enqueue, int sets, cudaStream_t stream) {
  constexpr int kLaunches = 2;
  const DeviceEvent begin, end;
  enqueue(0, stream);
  begin.record(stream);
  for (int i = 1; i <= kLaunches; ++i) enqueue(i % sets, stream);
  end.record(stream);
  check(cudaStreamSynchronize(stream), "waiting for a first launch");
  return begin.us_until(end) / kLaunches;
}

Graph make_graph(const Enqueue& enqueue, int sets, int launches, cudaStream_t stream) {
  return Graph(stream, [&] {
    for (int i = 0; i < launches; ++i) enqueue(i % sets, stream);
  });
}

std::size_t fastest(const std::vector<Enqueue>& ways, int sets, cudaStream_t stream) {
  std::vector<double> us;
  for (const Enqueue& way : ways) {
    const double estimate = estimate_us(way, sets, stream);
    if (estimate > kGraphUs) {  // launch costs no longer count: the estimate will do
      us.push_back(estimate);
      continue;
    }
    const int launches = launches_for(estimate, sets, kSearchGraphUs);
    const Graph graph = make_graph(way, sets, launches, stream);
    us.push_back(time_in_turns({&graph}, launches, 2, stream).front().us);
  }
  std::vector<std::size_t> order = order_of(us);
  order.resize(std::min<std::size_t>(order.size(), kFinalists));
  const int launches = launches_for(us[order.front()], sets, kGraphUs);
  std::vector<Graph> graphs;
  graphs.reserve(order.size());
  for (const std::size_t i : order) graphs.push_back(make_graph(ways[i], sets, launches, stream));
  const std::vector<Timing> finals = time_in_turns(pointers(graphs), launches, 3, stream);
  const auto best = std::min_element(finals.begin(), finals.end(), [](const Timing& x, const Timing& y) { return x.us < y.us; });
  return order[static_cast<std::size_t>(best - finals.begin())];
}

std::vector<Timing> time_in_turns(const std::vector<const Graph*>& graphs, int launches, int rounds, cudaStream_t stream, double turn_us) {
  std::vector<int> replays;  // of each in a turn
  for (const Graph* graph : graphs) replays.push_back(warm_up(*graph, turn_us, stream));
  struct Turn {
    DeviceEvent begin, end;  // of what is timed
  };
  std::vector<Turn> turns(graphs.size() * static_cast<std::size_t>(rounds));
  auto turn = turns.begin();
  for (int round = 0; round < rounds; ++round)
    for (std::size_t g = 0; g < graphs.size(); ++g, ++turn) {
      launch(*graphs[g], replays[g] - timed_of(replays[g]), stream);
      turn->begin.record(stream);
      launch(*graphs[g], timed_of(replays[g]), stream);
      turn->end.record(stream);
    }
  check(cudaStreamSynchronize(stream), "waiting for the timed launches");

  std::vector<Timing> timings;
  for (std::size_t g = 0; g < graphs.size(); ++g) {
    const int timed = launches * timed_of(replays[g]);
    std::vector<double> us;
    for (std::size_t at = g; at < turns.size(); at += graphs.size()) us.push_back(turns[at].begin.us_until(turns[at].end) / timed);
    timings.push_back({.us = median(us), .spread = relative_spread(us), .rounds = rounds, .launches_per_graph = launches});
  }
  return timings;
}

std::vector<Timing> time_all_beside(const std::vector<Enqueue>& ways, int sets, double seconds, cudaStream_t stream, int given_rounds,
                                    double turn_us) {
  std::vector<double> estimates;
  estimates.reserve(ways.size());
  for (const Enqueue& way : ways) estimates.push_back(estimate_us(way, sets, stream));
  const int launches = launches_for(estimates.front(), sets, kGraphUs);
  std::vector<Graph> graphs;
  graphs.reserve(ways.size());
  for (const Enqueue& way : ways) graphs.push_back(make_graph(way, sets, launches, stream));
  const double round_us = launches * std::accumulate(estimates.begin(), estimates.end(), 0.0);
  return time_in_turns(pointers(graphs), launches, rounds_within(seconds, round_us, given_rounds, turn_us), stream, turn_us);
}

std::pair<Timing, Timing> time_beside(const Enqueue& own, const Enqueue& rival, int sets, double seconds, cudaStream_t stream,
                                      int given_rounds) {
  const std::vector<Timing> timings = time_all_beside({own, rival}, sets, seconds, stream, given_rounds);
  return {timings[0], timings[1]};
}

}  // namespace sluice::bench
