// A loop over independent items, shared out among threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

namespace sluice {

inline int thread_count(int wanted, std::int64_t items) {
  const std::int64_t available = wanted > 0 ? wanted : std::max(1u, std::thread::hardware_concurrency());
  return static_cast<int>(std::clamp<std::int64_t>(items, 1, available));
}

// Each of `threads` threads, the caller's among them, runs body(next, thread): next() hands out item numbers until it returns -1.
// A machine that refuses further threads makes it slower, not wrong.
template <class Body>
void parallel(std::int64_t items, int threads, Body&& body) {
  std::atomic<std::int64_t> taken{0};
  const auto next = [&]() -> std::int64_t {
    const std::int64_t item = taken.fetch_add(1, std::memory_order_relaxed);
    return item < items ? item : -1;
  };
  std::vector<std::jthread> others;
  try {
    for (int thread = 1; thread < threads; ++thread) others.emplace_back([&body, &next, thread] { body(next, thread); });
  } catch (const std::system_error&) {}
  body(next, 0);
}

}  // namespace sluice
