// Global memory between CTAs: flags, tickets, fences, atomics, and the order of kernels in a stream.
#include <algorithm>

#include "small_kernels.hpp"

namespace sluice::test {
namespace {

struct GlobalMemory : testing::Test {
  std::vector<float> data = std::vector<float>(1024, 0.0f);
  std::vector<std::uint32_t> flags = std::vector<std::uint32_t>(64, 0);
  emulated::Launch launch{
      .clusters = 4, .threads_per_cta = 128, .shared_memory_bytes = 4096, .buffers = {output("data", data), output("flags", flags)}};

  void clean() {
    std::fill(data.begin(), data.end(), 0.0f);
    std::fill(flags.begin(), flags.end(), 0u);
  }
  // As expect_right and expect_objection, with clean memory before each run.
  void right(const Kernel& kernel, const std::function<void()>& check = {}) {
    clean();
    expect_right(launch, kernel, [&] {
      if (check) check();
      clean();
    });
  }
  void wrong(const char* expected, const Kernel& kernel, int resident = 0) {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      clean();
      const std::string message = objection(launch, with_seed(seed, resident), kernel);
      EXPECT_TRUE(std::regex_search(message, std::regex(expected))) << "seed " << seed << ", wanted: " << expected << "\ngot: " << message;
      if (HasFailure()) return;
    }
  }
};

// The writer passes a message through memory and a flag, the reader waits for the flag. How each does it is the litmus test.
enum class Signal { release, relaxed, fence_and_relaxed, counter, relaxed_counter };
enum class Wait { wait_for_flag, acquire };

Kernel message(std::vector<float>& data, std::vector<std::uint32_t>& flags, Signal signal, Wait wait, bool sync = true) {
  return [&data, &flags, signal, wait, sync] {
    float* const mine = &data[static_cast<std::size_t>(thread())];
    std::uint32_t* const flag = flags.data();
    if (arch::cluster_in_grid() == 0) {
      arch::store_global(mine, static_cast<float>(thread()) + 0.5f);
      if (sync) arch::sync_cta();
      if (thread() != 0) return;
      switch (signal) {
        case Signal::release:
          return arch::store_release(flag, 1);
        case Signal::fence_and_relaxed:
          arch::fence_global();
          return arch::store_relaxed(flag, 1);
        case Signal::relaxed:
          return arch::store_relaxed(flag, 1);
        case Signal::counter:
          return (void)arch::atomic_add_acq_rel(flag, 1);
        case Signal::relaxed_counter:
          return (void)arch::atomic_add_relaxed(flag, 1);
      }
    } else if (arch::cluster_in_grid() == 1) {
      if (thread() == 0) {
        if (wait == Wait::wait_for_flag) arch::wait_for_flag(flag, 1);
        if (wait == Wait::acquire)
          while (arch::load_acquire(flag) != 1) {  // polling lets the others go on
          }
      }
      arch::sync_cta();
      const float got = arch::load_global(mine);
      if (sync && signal != Signal::relaxed && signal != Signal::relaxed_counter) {
        EXPECT_EQ(got, static_cast<float>(thread()) + 0.5f);
      }
    }
  };
}

TEST_F(GlobalMemory, MessagesPassedByReleaseAndAcquire) {
  right(message(data, flags, Signal::release, Wait::wait_for_flag));
  right(message(data, flags, Signal::fence_and_relaxed, Wait::wait_for_flag));
  launch.clusters = 2;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    clean();
    EXPECT_EQ(objection(launch, with_seed(seed, 2), message(data, flags, Signal::release, Wait::acquire)), "");
  }
  clean();
  right(message(data, flags, Signal::counter, Wait::wait_for_flag));
}
TEST_F(GlobalMemory, LostRelease) {
  constexpr const char* kLost =
      "reads what it knows to be written but has not acquired: the barrier or flag between was relaxed \\(byte "
      "[0-9]+ of data\\); the other side is the store by cluster 0 warp";
  wrong(kLost, message(data, flags, Signal::relaxed, Wait::wait_for_flag));
  wrong(kLost, message(data, flags, Signal::relaxed_counter, Wait::wait_for_flag));
}
TEST_F(GlobalMemory, ReleasedTooEarly) {
  launch.clusters = 2;
  clean();
  // Either the reader comes between and reads what is being written, or it comes late: also then nobody has released it.
  int caught = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    clean();
    const std::string text = objection(launch, with_seed(seed), [&] {
      float* const mine = &data[static_cast<std::size_t>(thread())];
      if (arch::cluster_in_grid() == 0) {
        if (thread() == 0) arch::store_release(flags.data(), 1);
        arch::store_global(mine, 1.0f);
      } else {
        arch::wait_for_flag(flags.data(), 1);
        arch::load_global(mine);
      }
    });
    const bool seen =
        std::regex_search(text, std::regex("(reads what another thread is writing|overwrites what another is still reading).*data"));
    EXPECT_TRUE(seen) << "seed " << seed << ": " << text;
    caught += seen ? 1 : 0;
  }
  EXPECT_EQ(caught, 40);
}
TEST_F(GlobalMemory, NoAcquire) {
  launch.clusters = 2;
  wrong("(reads what another thread is writing: no synchronisation lies between|overwrites what another is still reading).*of data",
        [this] {
          float* const mine = &data[static_cast<std::size_t>(thread())];
          if (arch::cluster_in_grid() == 0)
            arch::store_global(mine, 1.0f);
          else
            arch::load_global(mine);
        });
}
TEST_F(GlobalMemory, RelaxedLoadsAcquireWithAFence) {
  const auto kernel = [this](bool fence) {
    return [this, fence] {
      float* const mine = &data[static_cast<std::size_t>(thread())];
      if (arch::cluster_in_grid() == 0) {
        arch::store_global(mine, 2.0f);
        arch::sync_cta();
        if (thread() == 0) arch::store_release(flags.data(), 1);
        return;
      }
      // The ticket tells who comes last; only who sees the flag may read.
      if (thread() == 0 && arch::atomic_add_relaxed(flags.data() + 1, 1) > 100) return;
      if (arch::cluster_in_grid() != 1) return;
      if (thread() == 0) {
        while (arch::atomic_add_relaxed(flags.data(), 0) != 1) {}
        if (fence) arch::fence_global();
      }
      arch::sync_cta();
      EXPECT_EQ(arch::load_global(mine), 2.0f);
    };
  };
  launch.clusters = 2;
  clean();
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed, clean()) {
    emulated::Options options = with_seed(seed, 2);
    EXPECT_EQ(objection(launch, options, kernel(true)), "") << seed;
    clean();
    EXPECT_NE(objection(launch, options, kernel(false)).find("has not acquired"), std::string::npos) << seed;
  }
}

TEST_F(GlobalMemory, NobodySyncsBeforeTheRelease) {
  wrong(
      "reads what another thread is writing: no synchronisation lies between \\(byte [0-9]+ of data|overwrites what another is still "
      "reading",
      message(data, flags, Signal::release, Wait::wait_for_flag, false));
}

// The last CTA to come adds up what all have left: split-K with a ticket.
TEST_F(GlobalMemory, TheLastOneToComeAddsUp) {
  const auto kernel = [this](bool acq_rel) {
    return [this, acq_rel] {
      const int me = arch::cluster_in_grid();
      arch::store_global(&data[static_cast<std::size_t>(me * 128 + thread())], static_cast<float>(me + 1));
      arch::sync_cta();
      if (thread() == 0) {
        const std::uint32_t before = acq_rel ? arch::atomic_add_acq_rel(flags.data(), 1) : arch::atomic_add_relaxed(flags.data(), 1);
        arch::store_shared(shared(0), before == 3 ? 1.0f : 0.0f);
      }
      arch::sync_cta();
      if (load_shared_float(shared(0)) == 0) return;
      float sum = 0;
      for (int cta = 0; cta < 4; ++cta) sum += arch::load_global(&data[static_cast<std::size_t>(cta * 128 + thread())]);
      arch::store_global(&data[static_cast<std::size_t>(512 + thread())], sum);
    };
  };
  right(kernel(true), [&] {
    for (std::size_t i = 512; i < 640; ++i) ASSERT_EQ(data[i], 10.0f);
  });
  wrong("has not acquired: the barrier or flag between was relaxed", kernel(false));
}

// Partials of one tile added in a fixed order, each CTA waiting for the one before it.
TEST_F(GlobalMemory, Turnstile) {
  const auto kernel = [this](bool resets, int waits_for) {
    return [this, resets, waits_for] {
      const auto me = static_cast<std::uint32_t>(arch::cluster_in_grid());
      if (thread() == 0) arch::wait_for_flag(flags.data(), waits_for < 0 ? me : static_cast<std::uint32_t>(waits_for));
      arch::sync_cta();
      float* const sum = &data[static_cast<std::size_t>(thread())];
      arch::store_global(sum, arch::load_global(sum) * 2 + static_cast<float>(me));
      arch::sync_cta();
      if (thread() == 0) arch::store_release(flags.data(), me == 3 && resets ? 0 : me + 1);
    };
  };
  right(kernel(true, -1), [&] {
    for (std::size_t i = 0; i < 128; ++i) ASSERT_EQ(data[i], 11.0f);  // ((0 * 2 + 1) * 2 + 2) * 2 + 3
    EXPECT_EQ(flags[0], 0u) << "the flag must be left as it was found";
  });
  wrong("deadlock: nobody can go on.*(\n.*)*waits for a flag to become 7; it is 0", kernel(true, 7));
}

TEST_F(GlobalMemory, WaitingForACtaThatIsNotResident) {
  const Kernel backwards = [this] {
    const auto me = static_cast<std::uint32_t>(arch::cluster_in_grid());
    if (thread() == 0) arch::wait_for_flag(flags.data(), 3 - me);
    arch::sync_cta();
    if (thread() == 0) arch::store_release(flags.data(), 4 - me);
  };
  clean();
  EXPECT_EQ(objection(launch, with_seed(1, 4), backwards), "");
  for (const int resident : {1, 2, 3})
    wrong(
        "deadlock.*\n.*cluster 0 warp 0 at tests/emulator/global_memory_test.cpp:[0-9]+ waits for a flag to become 3; it is 0(.*\n)*.*of 4 "
        "clusters resident",
        backwards, resident);
}

// What a copy has written may be passed on when the writing, not only the reading, has been waited for.
TEST_F(GlobalMemory, ResultsOfCopiesArePassedOn) {
  launch.clusters = 2;
  const auto kernel = [this](bool waits_for_writes) {
    return [this, waits_for_writes] {
      if (arch::cluster_in_grid() == 0) {
        arch::store_shared(shared(thread() * 4), 3.0f);
        arch::fence_shared_for_async();
        arch::sync_cta();
        if (thread() != 0) return;
        arch::bulk_store(data.data(), shared(0), 512);
        arch::bulk_commit();
        if (waits_for_writes) arch::bulk_wait<0>();
        arch::store_release(flags.data(), 1);
        arch::bulk_wait_read<0>();
      } else {
        arch::wait_for_flag(flags.data(), 1);
        EXPECT_EQ(arch::load_global(&data[static_cast<std::size_t>(thread())]), 3.0f);
      }
    };
  };
  right(kernel(true));
  wrong("reads what a copy is still filling: no wait for its full barrier lies between.*of data", kernel(false));
}

// Written with ordinary stores, then fetched by a copy: the proxies must be brought together.
TEST_F(GlobalMemory, CopiesOfOrdinaryStoresNeedAProxyFence) {
  const auto kernel = [this](bool fence) {
    return [this, fence] {
      arch::Barrier* const full = make_barrier(2048, 1);
      if (arch::cluster_in_grid() != 0) return;
      arch::store_global(&data[static_cast<std::size_t>(thread())], 5.0f);
      if (fence) arch::fence_global_for_async();
      arch::sync_cta();
      if (thread() == 0) {
        arch::barrier_arrive_expect_bytes(full, 512);
        arch::bulk_load(shared(0), data.data(), 512, full);
      }
      arch::barrier_wait(full, 0);
      EXPECT_EQ(load_shared_float(shared(thread() * 4)), 5.0f);
    };
  };
  right(kernel(true));
  wrong("starts a copy that reads through the asynchronous proxy what ordinary stores have written.*of data", kernel(false));
}

TEST_F(GlobalMemory, AtomicsAddUp) {
  right(
      [this] {
        arch::atomic_add_float(&data[static_cast<std::size_t>(thread() % 3)], 1.0f);
        arch::atomic_add_relaxed(&flags[static_cast<std::size_t>(thread() % 2)], 2);
      },
      [&] {
        EXPECT_EQ(data[0] + data[1] + data[2], 512.0f);
        EXPECT_EQ(flags[0], 512u);
        EXPECT_EQ(flags[1], 512u);
      });
}

// Sums made by atomic additions and by reducing copies are read by the last CTA to come, which must have acquired them.
TEST_F(GlobalMemory, SumsOfAdditionsAreAcquiredLikeStores) {
  const auto kernel = [this](bool copies, bool waits_for_writes, bool acq_rel) {
    return [this, copies, waits_for_writes, acq_rel] {
      float* const mine = &data[static_cast<std::size_t>(thread())];
      if (copies) {
        arch::store_shared(shared(1024 + thread() * 4), 2.0f);
        arch::fence_shared_for_async();
        arch::sync_cta();
        if (thread() == 0) {
          arch::bulk_reduce_add(data.data(), shared(1024), 512);
          arch::bulk_commit();
          arch::bulk_wait_read<0>();
          if (waits_for_writes) arch::bulk_wait<0>();
        }
      } else {
        arch::atomic_add_float(mine, 2.0f);
      }
      arch::sync_cta();
      if (thread() == 0) {
        const std::uint32_t before = acq_rel ? arch::atomic_add_acq_rel(flags.data(), 1) : arch::atomic_add_relaxed(flags.data(), 1);
        arch::store_shared(shared(0), before == 3 ? 1.0f : 0.0f);
      }
      arch::sync_cta();
      if (load_shared_float(shared(0)) == 0) return;
      const float sum = arch::load_global(mine);
      if (waits_for_writes && acq_rel) {
        EXPECT_EQ(sum, 8.0f);
      }
    };
  };
  right(kernel(false, true, true));
  right(kernel(true, true, true));
  wrong("has not acquired: the barrier or flag between was relaxed.*addition by", kernel(false, true, false));
  wrong("reads what a copy is still filling.*reducing copy started by", kernel(true, false, true));
}

// Places are watched in sixteens of bytes; neighbours in one of them are no race, the same byte is.
TEST_F(GlobalMemory, NeighboursAreNoRace) {
  const auto kernel = [this](int distance) {
    return [this, distance] {
      if (thread() != 0) return;
      float* const mine = &data[static_cast<std::size_t>(arch::cluster_in_grid() * distance)];
      for (int i = 0; i < 3; ++i) arch::store_global(mine, arch::load_global(mine) + 1.0f);
    };
  };
  right(kernel(1), [&] { EXPECT_EQ(data[0] + data[1] + data[2] + data[3], 12.0f); });
  wrong("(reads|overwrites) what another (thread is writing|is still writing|is still reading).*\\(byte 0 of data\\)", kernel(0));
}

TEST_F(GlobalMemory, BoundsAndAlignment) {
  wrong("reads 4 bytes of global memory outside every operand: byte 4096 of data, which has 4096",
        [this] { arch::load_global(data.data() + 1024); });
  wrong("writes 4 bytes of global memory outside every operand: byte -4 of data", [this] { arch::store_global(data.data() - 1, 1.0f); });
  wrong("reads 4 bytes of data at an address that is not a multiple of that",
        [this] { arch::load_global(reinterpret_cast<const float*>(reinterpret_cast<const char*>(data.data()) + 2)); });
  wrong("uses a flag at an address that is not a multiple of 4",
        [this] { arch::load_acquire(reinterpret_cast<const std::uint32_t*>(reinterpret_cast<const char*>(flags.data()) + 1)); });
  wrong("reads 4 bytes of global memory outside every operand", [] {
    static const std::uint32_t elsewhere = 0;
    arch::load_acquire(&elsewhere);
  });
}

// Kernels of a stream: what this one may touch before the one before it has finished.
TEST(Predecessor, MayBeOvertakenByReadsOfConstantsAlone) {
  const std::vector<float> weights(16, 1.0f), activations(16, 2.0f);
  std::vector<std::uint32_t> flags(1);
  const emulated::Launch launch{.threads_per_cta = 128,
                                .buffers = {input("weights", weights, true), input("activations", activations), output("flags", flags)}};
  const auto run = [&](const Kernel& kernel) -> std::string {
    try {
      emulated::run(launch, with_seed(3), kernel);
    } catch (const emulated::EmulationError& wrong) {
      return wrong.what();
    }
    return "";
  };
  const auto too_early = [&](const std::string& what, const Kernel& kernel) {
    const std::string message = run(kernel);
    EXPECT_NE(message.find(what + " before the kernel before it has finished (wait_for_predecessor)"), std::string::npos) << message;
  };
  EXPECT_EQ(run([&] {
              EXPECT_EQ(arch::load_global(weights.data()), 1.0f);
              arch::allow_successor();
              arch::wait_for_predecessor();
              EXPECT_EQ(arch::load_global(activations.data()), 2.0f);
              arch::store_relaxed(flags.data(), 1);
            }),
            "");
  too_early("reads activations", [&] { arch::load_global(activations.data()); });
  too_early("writes flags", [&] { arch::store_relaxed(flags.data(), 1); });
  too_early("reads flags", [&] { arch::load_acquire(flags.data()); });
}

}  // namespace
}  // namespace sluice::test
