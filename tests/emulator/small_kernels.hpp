// Kernels of a few lines on the emulated machine: written on the calls of arch/, run under many seeds, right or wrong on purpose.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <regex>
#include <string>
#include <vector>

#include "arch/arch.cuh"
#include "arch/emulated/emulator.hpp"

namespace sluice::test {

namespace emulated = arch::emulated;
using Kernel = std::function<void()>;

inline constexpr int kSeeds = 24;

inline emulated::Options with_seed(std::uint64_t seed, int resident_clusters = 0) {
  constexpr std::array kAll = {Asynchrony::random, Asynchrony::eager, Asynchrony::lazy, Asynchrony::mixed};
  return {{.seed = seed, .asynchrony = kAll[seed % kAll.size()], .resident_clusters = resident_clusters}, {}};
}

// What the machine objects to under this seed, or nothing. The kernel may touch global memory from its beginning.
inline std::string objection(const emulated::Launch& launch, const emulated::Options& options, const Kernel& kernel) {
  try {
    emulated::run(launch, options, [&] {
      arch::wait_for_predecessor();
      kernel();
    });
  } catch (const emulated::EmulationError& wrong) {
    return wrong.what();
  }
  return "";
}

// Runs the kernel under each seed; `check` looks at the result of each.
inline void expect_right(const emulated::Launch& launch, const Kernel& kernel, const std::function<void()>& check = {}) {
  for (int resident : {0, 1})
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      EXPECT_EQ(objection(launch, with_seed(seed, resident), kernel), "") << "seed " << seed;
      if (check) check();
      if (testing::Test::HasFailure()) return;
    }
}

// The kernel is wrong, and no interleaving hides it: each seed ends with a message that matches.
inline void expect_objection(const emulated::Launch& launch, const std::string& expected, const Kernel& kernel) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::string message = objection(launch, with_seed(seed), kernel);
    EXPECT_TRUE(std::regex_search(message, std::regex(expected))) << "seed " << seed << ", wanted: " << expected << "\ngot: " << message;
    if (testing::Test::HasFailure()) return;
  }
}

// A buffer of global memory, as an operand of the launch.
template <class T>
emulated::GlobalBuffer input(const char* name, const std::vector<T>& memory, bool constant = false) {
  return {.name = name, .data = memory.data(), .bytes = memory.size() * sizeof(T), .constant = constant};
}
template <class T>
emulated::GlobalBuffer output(const char* name, std::vector<T>& memory) {
  return {.name = name, .data = memory.data(), .bytes = memory.size() * sizeof(T), .writable = true};
}

inline int thread() { return emulated::thread_in_cta(); }
inline arch::SharedAddress shared(int bytes) {
  return arch::shared_address(arch::dynamic_shared_memory()) + static_cast<std::uint32_t>(bytes);
}
inline arch::Barrier* barrier_at(int bytes) { return reinterpret_cast<arch::Barrier*>(arch::dynamic_shared_memory() + bytes); }

// One barrier, ready for everyone of the CTA (and, with the cluster's barrier, of the cluster).
inline arch::Barrier* make_barrier(int bytes, int arrivals, bool cluster = false) {
  arch::Barrier* const barrier = barrier_at(bytes);
  if (thread() == 0) {
    arch::barrier_init(barrier, arrivals);
    arch::fence_barrier_init();
  }
  if (cluster) {
    arch::cluster_arrive();
    arch::cluster_wait();
  } else {
    arch::sync_cta();
  }
  return barrier;
}

inline void sync_cluster() {
  arch::cluster_arrive();
  arch::cluster_wait();
}

inline float load_shared_float(arch::SharedAddress address, emulated::Location at = emulated::Location::current()) {
  float value[1];
  arch::load_shared(address, value, at);
  return value[0];
}

// Copies words to shared memory by ordinary stores, 16 bytes each.
inline void store_words(arch::SharedAddress address, const void* from) {
  std::uint32_t words[4];
  std::memcpy(words, from, sizeof words);
  arch::store_shared(address, words);
}

}  // namespace sluice::test
