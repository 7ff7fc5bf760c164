#include "bench/timing.hpp"

#include "bench/statistics.hpp"

namespace sluice::bench {
namespace {

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "creating an event"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(cudaStream_t stream) const { check(cudaEventRecord(event_, stream), "recording an event"); }
  double us_until(const Event& later) const {
    float ms = 0;
    check(cudaEventElapsedTime(&ms, event_, later.event_), "reading the time between two events");
    return ms * 1e3;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace

double estimate_us(const Enqueue& enqueue, int sets, cudaStream_t stream) {
  constexpr int kLaunches = 2;
  const Event begin, end;
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

std::vector<Timing> time_in_turns(const std::vector<const Graph*>& graphs, int launches, int rounds, cudaStream_t stream) {
  for (const Graph* graph : graphs) graph->launch(stream);
  std::vector<Event> events(graphs.size() * static_cast<std::size_t>(rounds) + 1);
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

}  // namespace sluice::bench
