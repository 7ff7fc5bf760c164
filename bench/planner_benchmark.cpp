// How long planning takes: cold, from the cache, and from the cache by many threads at once.
// Aims: a cold plan under 50 us, a plan from the cache under 1 us.
#include <benchmark/benchmark.h>

#include <cstdint>

#include "sluice/device.hpp"
#include "sluice/plan_cache.hpp"

namespace {

using namespace sluice;

const DeviceSpec& h200() {
  static const DeviceSpec device = *find_device("h200");
  return device;
}

// The linear layers of a language model: what a program asks for again and again.
GemmProblem layer(std::int64_t i) { return {.m = 1 + i % 64, .n = 4096 + 128 * (i / 64), .k = 4096}; }

void cold_plan(benchmark::State& state) {
  const bool keep = state.range(0) != 0;
  std::int64_t i = 0;
  for (auto _ : state) benchmark::DoNotOptimize(plan(layer(i++ % 2048), h200(), {.keep_candidates = keep}));
}
BENCHMARK(cold_plan)->ArgName("candidates")->Arg(1)->Arg(0)->Unit(benchmark::kMicrosecond);

void cold_plan_large(benchmark::State& state) {
  const GemmProblem problem{.m = 8192, .n = 8192, .k = 8192};
  for (auto _ : state) benchmark::DoNotOptimize(plan(problem, h200()));
}
BENCHMARK(cold_plan_large)->Unit(benchmark::kMicrosecond);

// All threads ask for one and the same plan: the worst case for the lock and the reference count.
void cached_plan(benchmark::State& state) {
  static PlanCache cache;
  const GemmProblem problem = layer(0);
  for (auto _ : state) benchmark::DoNotOptimize(cache.get(problem, h200()));
}
BENCHMARK(cached_plan)->ThreadRange(1, 16)->UseRealTime();

// A full cache, asked for different plans in turn.
void cached_plan_among_2048(benchmark::State& state) {
  static PlanCache cache;
  std::int64_t i = 509 * state.thread_index();
  for (std::int64_t p = 0; p < 2048; ++p) benchmark::DoNotOptimize(cache.get(layer(p), h200()));
  for (auto _ : state) benchmark::DoNotOptimize(cache.get(layer(i++ % 2048), h200()));
}
BENCHMARK(cached_plan_among_2048)->ThreadRange(1, 16)->UseRealTime();

void explained(benchmark::State& state) {
  const Result<Plan> made = plan(layer(0), h200());
  for (auto _ : state) benchmark::DoNotOptimize(explain(*made));
}
BENCHMARK(explained)->Unit(benchmark::kMicrosecond);

void to_json_and_back(benchmark::State& state) {
  const Result<Plan> made = plan(layer(0), h200(), {.keep_candidates = false});
  for (auto _ : state) benchmark::DoNotOptimize(plan_from_json(to_json(*made)));
}
BENCHMARK(to_json_and_back)->Unit(benchmark::kMicrosecond);

}  // namespace

BENCHMARK_MAIN();
