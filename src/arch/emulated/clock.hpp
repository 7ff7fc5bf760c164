// Who knows of what: vector clocks, one component for each agent (a warp, a warpgroup's tensor cores, a barrier's copies, ...).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::arch::emulated {

// An access: the agent that made it, when on that agent's own clock, and where in the source (an index into Machine's sites).
struct Epoch {
  std::uint16_t agent = 0;
  bool generic = false;    // an ordinary access, as opposed to one of the asynchronous proxy
  bool adds = false;       // an atomic addition: others may add at the same time
  std::uint32_t time = 0;  // 0: never
  std::uint32_t site = 0;
};

// What one party knows of all agents. `order`: what has happened before, by any synchronisation. `visible`: whose writes it may read, by
// release and acquire alone. `proxied`: whose ordinary writes the asynchronous proxy sees when this party starts it, by proxy fences.
// `ended`: whose ordinary reads have ended for the asynchronous proxy, by any synchronisation or a proxy fence. A party's own order in its
// program is not among them: loads take time, and the other proxy does not wait for them.
class Clock {
 public:
  Clock() = default;
  explicit Clock(std::size_t agents) : agents_(agents), times_(4 * agents) {}

  std::uint32_t& order(std::size_t agent) { return times_[agent]; }
  std::uint32_t& visible(std::size_t agent) { return times_[agents_ + agent]; }
  std::uint32_t& proxied(std::size_t agent) { return times_[2 * agents_ + agent]; }
  std::uint32_t& ended(std::size_t agent) { return times_[3 * agents_ + agent]; }
  bool ordered(const Epoch& e) const { return times_[e.agent] >= e.time; }
  bool sees(const Epoch& e) const { return times_[agents_ + e.agent] >= e.time; }
  bool proxy_sees(const Epoch& e) const { return times_[(e.generic ? 2 : 1) * agents_ + e.agent] >= e.time; }
  bool ended_for_proxy(const Epoch& e) const { return times_[(e.generic ? 3 : 0) * agents_ + e.agent] >= e.time; }

  void join(const Clock& other) {
    join_order(other);
    merge(agents_, other, agents_, 2 * agents_);
  }
  void join_order(const Clock& other) {
    merge(0, other, 0, agents_);
    merge(3 * agents_, other, 0, agents_);
  }
  void fence_proxy() {
    const auto part = [this](std::size_t number) { return times_.begin() + static_cast<std::ptrdiff_t>(number * agents_); };
    std::copy_n(part(1), agents_, part(2));
    std::copy_n(part(0), agents_, part(3));
  }
  bool empty() const { return times_.empty(); }

 private:
  void merge(std::size_t to, const Clock& other, std::size_t from, std::size_t count) {
    std::uint32_t* mine = times_.data() + to;
    const std::uint32_t* theirs = other.times_.data() + from;
    for (std::size_t i = 0; i < count; ++i) mine[i] = mine[i] > theirs[i] ? mine[i] : theirs[i];
  }
  std::size_t agents_ = 0;
  std::vector<std::uint32_t> times_;
};

}  // namespace sluice::arch::emulated
