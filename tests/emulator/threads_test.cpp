// Warps, named barriers and the cluster's barrier.
#include <algorithm>

#include "small_kernels.hpp"

namespace sluice::test {
namespace {

const emulated::Launch kOneCta{.threads_per_cta = 256, .shared_memory_bytes = 4096};

// Each thread writes a word and, after `sync`, reads that of a thread of another warp.
Kernel exchange(const std::function<void()>& sync) {
  return [sync] {
    const int other = (thread() + 96) % 256;
    arch::store_shared(shared(thread() * 16), static_cast<float>(thread()));
    sync();
    EXPECT_EQ(load_shared_float(shared(other * 16)), static_cast<float>(other));
  };
}

TEST(NamedBarrier, SeparatesWritersFromReaders) {
  expect_right(kOneCta, exchange([] { arch::named_barrier_sync(5, 256); }));
  expect_right(kOneCta, exchange([] { arch::sync_cta(); }));
}

TEST(NamedBarrier, ItsAbsenceIsSeen) {
  expect_objection(kOneCta, "reads (what another thread is writing|shared memory that nobody has written)", exchange([] {}));
  // Two barriers of a half each order nothing between the halves.
  expect_objection(kOneCta, "lane [0-9]+ at tests/emulator/threads_test.cpp:[0-9]+ (reads|overwrites) (what|shared memory)",
                   exchange([] { arch::named_barrier_sync(1 + arch::warpgroup_in_cta(), 128); }));
}

TEST(NamedBarrier, CountsAnewEachTime) {
  std::vector<int> passed;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    passed.assign(5, 0);
    emulated::run(kOneCta, with_seed(seed), [&] {
      for (std::size_t round = 0; round < 5; ++round) {
        ++passed[round];
        arch::named_barrier_sync(3, 256);
        EXPECT_EQ(passed[round], 256);
      }
    });
  }
}

TEST(NamedBarrier, ArrivingPublishesWithoutWaiting) {
  expect_right(kOneCta, [] {
    if (arch::warpgroup_in_cta() == 0) {
      arch::store_shared(shared(thread() * 16), 1.0f + static_cast<float>(thread()));
      arch::named_barrier_arrive(2, 256);
    } else {
      arch::named_barrier_sync(2, 256);
      EXPECT_EQ(load_shared_float(shared((thread() - 128) * 16)), static_cast<float>(thread() - 127));
    }
  });
}

TEST(NamedBarrier, MisuseIsNamed) {
  expect_objection(kOneCta, "comes to a barrier of (128|256) threads at which others expect (128|256)",
                   [] { arch::named_barrier_sync(1, arch::warpgroup_in_cta() == 0 ? 128 : 256); });
  expect_objection(kOneCta, "named barrier 16; there are 0 to 15", [] { arch::named_barrier_sync(16, 256); });
  expect_objection(kOneCta, "a barrier of 100 threads, not a multiple of 32", [] { arch::named_barrier_sync(1, 100); });
  expect_objection(kOneCta, "warp 3 at tests/emulator/threads_test.cpp:[0-9]+ waits for named barrier 7 \\(128 of 256", [] {
    if (arch::warpgroup_in_cta() == 0) arch::named_barrier_sync(7, 256);
  });
}

TEST(Warp, ElectsOneLane) {
  std::vector<int> elected(8);
  expect_right(
      kOneCta, [&] { elected[static_cast<std::size_t>(arch::warp_in_cta())] += arch::elect_one() ? 1 : 0; },
      [&] {
        EXPECT_EQ(elected, std::vector<int>(8, 1));
        elected.assign(8, 0);
      });
}

TEST(Warp, ElectsAnyLane) {
  std::vector<bool> seen(32);
  for (std::uint64_t seed = 0; seed < 40; ++seed)
    emulated::run(kOneCta, with_seed(seed), [&] {
      if (arch::elect_one()) seen[static_cast<std::size_t>(arch::lane())] = true;
    });
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 32) << "a kernel that counts on lane 0 is not found out";
}

TEST(Warp, ShufflesExchangeValues) {
  expect_right(kOneCta, [] {
    float sum = static_cast<float>(arch::lane() + 1);
    for (const int mask : {16, 8, 4, 2, 1}) {
      EXPECT_EQ(arch::shuffle_xor(static_cast<float>(arch::lane()), mask), static_cast<float>(arch::lane() ^ mask));
      sum += arch::shuffle_xor(sum, mask);
    }
    EXPECT_EQ(sum, 528.0f);
  });
  expect_objection(kOneCta, "asks for the value of lane 32; a warp has 0 to 31", [] { arch::from_lane(1, 32); });
}

TEST(Warp, DivergenceIsSeen) {
  expect_objection(kOneCta, "the warp has diverged before an instruction that needs all of it", [] {
    if (arch::lane() < 16)
      arch::shuffle_xor(1, 1);
    else
      arch::shuffle_xor(1, 2);
  });
  expect_objection(kOneCta, "waits for the other lanes of its warp: 16 of 32 have come to elect_one", [] {
    if (arch::lane() % 2 == 0) arch::elect_one();
  });
}

TEST(Warp, RegisterLimitsFollowTheRules) {
  expect_right(kOneCta, [] { arch::raise_register_limit<240>(); });
  const emulated::Launch kFourWarpgroups{.threads_per_cta = 512};  // 128 registers a thread
  expect_right(kFourWarpgroups, [] {
    if (arch::warpgroup_in_cta() == 0)
      arch::lower_register_limit<56>();
    else
      arch::raise_register_limit<152>();
  });
  expect_objection(kFourWarpgroups, "waits for 32 more registers, of which others have handed over [0-9]+", [] {
    if (arch::warpgroup_in_cta() == 0)
      arch::lower_register_limit<56>();
    else
      arch::raise_register_limit<160>();
  });
  expect_objection(kOneCta, "register limit of 20; it must be a multiple of 8 from 24 to 256", [] { arch::lower_register_limit<20>(); });
  expect_objection(kOneCta, "register limit of 100", [] { arch::raise_register_limit<100>(); });
}

// Lane 8 i + r names row r of matrix i; each lane holds two neighbours of a row (transposed: of a column) of each matrix.
template <bool transposed>
void store_and_compare_matrices() {
  const int lane = arch::lane();
  std::uint32_t words[4];
  for (int i = 0; i < 4; ++i) {
    const auto element = [&](int e) { return static_cast<std::uint32_t>(i * 64 + lane / 4 * 8 + lane % 4 * 2 + e); };
    words[i] = element(0) | element(1) << 16;
  }
  const arch::SharedAddress mine = shared(arch::warp_in_cta() * 512);
  arch::store_matrices<transposed>(mine + static_cast<std::uint32_t>(lane) * 16, words);
  arch::sync_cta();
  float pair[1];
  for (int matrix = 0; matrix < 4; ++matrix) {
    const int row = lane / 4, first = lane % 4 * 2;
    arch::load_shared(mine + static_cast<std::uint32_t>(matrix * 128 + row * 16 + first * 2), pair);
    const auto bits = std::bit_cast<std::uint32_t>(pair[0]);
    const int low = matrix * 64 + (transposed ? first * 8 + row : row * 8 + first);
    const int high = matrix * 64 + (transposed ? (first + 1) * 8 + row : row * 8 + first + 1);
    EXPECT_EQ(bits, static_cast<std::uint32_t>(low) | static_cast<std::uint32_t>(high) << 16);
  }
}
TEST(Warp, StoresMatricesBothWays) {
  expect_right(kOneCta, [] { store_and_compare_matrices<false>(); });
  expect_right(kOneCta, [] { store_and_compare_matrices<true>(); });
}

const emulated::Launch kCluster{.clusters = 3, .ctas_per_cluster = 2, .threads_per_cta = 128, .shared_memory_bytes = 4096};

TEST(ClusterBarrier, SeparatesWritersFromReaders) {
  expect_right(kCluster, [] {
    const int me = arch::cta_in_cluster();
    for (int e = 0; e < 4; ++e) arch::store_shared(shared(thread() * 16 + e * 4), static_cast<float>(100 * me + e));
    arch::cluster_arrive();
    arch::cluster_wait();
    float values[4];
    arch::load_cluster(arch::in_cta(shared(thread() * 16), 1 - me), values);
    for (int e = 0; e < 4; ++e) EXPECT_EQ(values[e], static_cast<float>(100 * (1 - me) + e));
    sync_cluster();  // nobody ends while it is read
  });
}

TEST(ClusterBarrier, WorkBetweenArrivingAndWaitingIsNotCovered) {
  expect_objection(kCluster, "reads (what another thread is writing|shared memory that nobody has written)", [] {
    arch::cluster_arrive();
    for (int e = 0; e < 4; ++e) arch::store_shared(shared(thread() * 16 + e * 4), 1.0f);
    arch::cluster_wait();
    float values[4];
    arch::load_cluster(arch::in_cta(shared(thread() * 16), 1 - arch::cta_in_cluster()), values);
    sync_cluster();
  });
}

TEST(ClusterBarrier, RelaxedArrivalsPublishNothing) {
  expect_objection(kCluster, "has not acquired: the barrier or flag between was relaxed", [] {
    for (int e = 0; e < 4; ++e) arch::store_shared(shared(thread() * 16 + e * 4), 1.0f);
    arch::cluster_arrive_relaxed();
    arch::cluster_wait();
    float values[4];
    arch::load_cluster(arch::in_cta(shared(thread() * 16), 1 - arch::cta_in_cluster()), values);
    sync_cluster();
  });
}

TEST(ClusterBarrier, MisuseIsNamed) {
  expect_objection(kCluster, "arrives twice at the cluster's barrier", [] {
    arch::cluster_arrive();
    arch::cluster_arrive();
  });
  expect_objection(kCluster, "waits at the cluster's barrier without having arrived", [] { arch::cluster_wait(); });
  expect_objection(kCluster, "deadlock.*\n.*CTA 0 warp 0 at tests/.* waits for the cluster's barrier \\(128 of 256 threads are there\\)",
                   [] {
                     if (arch::cta_in_cluster() == 0) sync_cluster();
                   });
}

}  // namespace
}  // namespace sluice::test
