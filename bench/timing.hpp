// Times of launches, competitors in turn.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "bench/device_memory.hpp"
#include "bench/report.hpp"

namespace sluice::bench {

// Puts one launch on the stream, over the operands of the set with this number.
using Enqueue = std::function<void(int set, cudaStream_t stream)>;

// After a launch to warm up, the mean of two without a graph: right within a few microseconds, enough to size a graph by.
double estimate_us(const Enqueue& enqueue, int sets, cudaStream_t stream);

inline constexpr double kGraphUs = 2000;    // of the graphs whose times are reported
inline constexpr double kTimedShare = 0.6;  // of the seconds for a shape: checks, estimates and graphs have the rest

std::vector<const Graph*> pointers(const std::vector<Graph>& graphs);

Graph make_graph(const Enqueue& enqueue, int sets, int launches, cudaStream_t stream);

// Which of several ways to do one thing is the fastest: each alone first, then the best few in turn.
std::size_t fastest(const std::vector<Enqueue>& ways, int sets, cudaStream_t stream);

// Replays the graphs in turn, A B C A B C ..., once to warm up and then `rounds` times. The whole is enqueued before anything is waited
// for, so that the GPU never idles between two of them. A turn is one replay; with turn_us as many as last that long, of which the last
// third is timed. At the power limit turns of a few milliseconds share one clock, whoever draws more; in turns of 0.2 s and more each
// has its own.
std::vector<Timing> time_in_turns(const std::vector<const Graph*>& graphs, int launches, int rounds, cudaStream_t stream,
                                  double turn_us = 0);

// Competitors in turn, in graphs of about kGraphUs of the first, for about so many seconds, or in as many rounds as are given.
std::vector<Timing> time_all_beside(const std::vector<Enqueue>& ways, int sets, double seconds, cudaStream_t stream, int given_rounds = 0,
                                    double turn_us = 0);
std::pair<Timing, Timing> time_beside(const Enqueue& own, const Enqueue& rival, int sets, double seconds, cudaStream_t stream,
                                      int given_rounds = 0);

}  // namespace sluice::bench
