// What a message names of a run (seed, asynchrony, residents) makes the same run again.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "arch/emulated/emulator.hpp"
#include "arch/emulated/engine.hpp"

namespace sluice::arch::emulated {
namespace {

// The order in which 256 threads of two CTAs get through three barriers.
std::vector<int> order_of_turns(std::uint64_t seed, Asynchrony asynchrony) {
  Options options;
  options.seed = seed;
  options.asynchrony = asynchrony;
  std::vector<int> order;
  run({.clusters = 2, .shared_memory_bytes = 1024}, options, [&] {
    for (int i = 0; i < 3; ++i) {
      order.push_back(cluster_in_grid() * 128 + thread_in_cta());
      sync_cta(Location::current());
    }
  });
  return order;
}

TEST(Replay, ASeedIsAnInterleaving) {
  for (const std::uint64_t seed : {0, 1, 2}) EXPECT_EQ(order_of_turns(seed, Asynchrony::random), order_of_turns(seed, Asynchrony::random));
  EXPECT_NE(order_of_turns(0, Asynchrony::random), order_of_turns(1, Asynchrony::random));
}

// A message says which asynchrony was drawn. Asked for by name, it must not shift what else the seed draws.
TEST(Replay, TheDrawnAsynchronyByNameIsTheSameRun) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const std::vector<int> drawn = order_of_turns(seed, Asynchrony::random);
    const std::array named{Asynchrony::eager, Asynchrony::lazy, Asynchrony::mixed};
    EXPECT_TRUE(std::any_of(named.begin(), named.end(), [&](Asynchrony a) { return order_of_turns(seed, a) == drawn; })) << seed;
  }
}

}  // namespace
}  // namespace sluice::arch::emulated
