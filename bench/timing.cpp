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

std::vector<Timing> time_in_turns(const std::vector<const Graph*>& graphs, int launches, int rounds, cudaStream_t stream) {
  for (const Graph* graph : graphs) graph->launch(stream);
  std::vector<DeviceEvent> events(graphs.size() * static_cast<std::size_t>(rounds) + 1);
  auto next = events.begin();
  next->record(stream);
  for (int round = 0; round < rounds; ++round)
    for (const Graph* graph : graphs) {
      graph->launch(stream);
      (++next)->record(stream);
    }
  check(cudaStreamSynchronize(stream), "waiting for the timed launches");

  std::vector<Timing> timings;
  for (std::size_t g = 0; g < graphs.size(); ++g) {
    std::vector<double> us;
    for (std::size_t at = g; at + 1 < events.size(); at += graphs.size()) us.push_back(events[at].us_until(events[at + 1]) / launches);
    timings.push_back({.us = median(us), .spread = relative_spread(us), .rounds = rounds, .launches_per_graph = launches});
  }
  return timings;
}

std::vector<Timing> time_all_beside(const std::vector<Enqueue>& ways, int sets, double seconds, cudaStream_t stream, int given_rounds) {
  std::vector<double> estimates;
  estimates.reserve(ways.size());
  for (const Enqueue& way : ways) estimates.push_back(estimate_us(way, sets, stream));
  const int launches = launches_for(estimates.front(), sets, kGraphUs);
  std::vector<Graph> graphs;
  graphs.reserve(ways.size());
  for (const Enqueue& way : ways) graphs.push_back(make_graph(way, sets, launches, stream));
  const double round_us = launches * std::accumulate(estimates.begin(), estimates.end(), 0.0);
  return time_in_turns(pointers(graphs), launches, rounds_within(seconds, round_us, given_rounds), stream);
}

std::pair<Timing, Timing> time_beside(const Enqueue& own, const Enqueue& rival, int sets, double seconds, cudaStream_t stream,
                                      int given_rounds) {
  const std::vector<Timing> timings = time_all_beside({own, rival}, sets, seconds, stream, given_rounds);
  return {timings[0], timings[1]};
}

}  // namespace sluice::bench
