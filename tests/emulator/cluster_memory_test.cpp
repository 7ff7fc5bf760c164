// Distributed shared memory: reading, pushing and arriving across the CTAs of a cluster, and leaving it.
#include <algorithm>

#include "small_kernels.hpp"

namespace sluice::test {
namespace {

constexpr int kBarrier = 8192;
const emulated::Launch kPairs{.clusters = 3, .ctas_per_cluster = 2, .threads_per_cta = 128, .shared_memory_bytes = 12288};
const emulated::Launch kFours{.clusters = 2, .ctas_per_cluster = 4, .threads_per_cta = 128, .shared_memory_bytes = 12288};

// A reduction over the cluster by pushing: each CTA stores its sums into the next one's memory, which counts the bytes. What is left out or
// changed is what is wrong.
struct Push {
  int expected_bytes = 128 * 16;
  bool waits = true;
  bool counts_at_home = false;
  bool waits_for_all = true;
};
Kernel push(const Push& how) {
  return [how] {
    const int me = arch::cta_in_cluster(), next = me ^ 1;
    arch::Barrier* const full = make_barrier(kBarrier, 1, true);
    if (thread() == 0) arch::barrier_arrive_expect_bytes(full, how.expected_bytes);
    const auto value = static_cast<float>(1000 * me + thread());
    arch::store_async(arch::in_cta(shared(thread() * 16), next), {value, value + 0.25f, value + 0.5f, value + 0.75f},
                      arch::in_cta(shared(kBarrier), how.counts_at_home ? me : next));
    if (how.waits) arch::barrier_wait(full, 0);
    const float got = load_shared_float(shared(thread() * 16 + 4));
    if (how.expected_bytes == 128 * 16) {
      EXPECT_EQ(got, static_cast<float>(1000 * next + thread()) + 0.25f);
    }
    if (how.waits_for_all) sync_cluster();
  };
}

TEST(StoreAsync, PushesIntoThePeer) {
  expect_right(kPairs, push({}));
  expect_right(kFours, push({}));
  expect_right(kPairs, push({.waits_for_all = false}));  // each has had all that others send
}
TEST(StoreAsync, ReadBeforeTheBytesAreCounted) {
  expect_objection(kPairs, "reads (what a copy is still filling: no wait for its full barrier|shared memory that nobody has written)",
                   push({.waits = false}));
}
TEST(StoreAsync, FewerBytesExpectedThanCome) {
  expect_objection(
      kPairs,
      "ends a phase of barrier 0 while [0-9]+ more copies that it counts are under way: fewer bytes were expected than they bring|"
      "bytes more than were expected to barrier 0|more bytes have come than were expected|"
      "reads (what a copy is still filling|shared memory that nobody has written)",
      push({.expected_bytes = 64 * 16}));
}
TEST(StoreAsync, MoreBytesExpectedThanCome) {
  expect_objection(kPairs, "deadlock.*\n.*waits for the end of a phase of parity 0 of barrier 0.* and 16 bytes to come",
                   push({.expected_bytes = 129 * 16}));
}
TEST(StoreAsync, CountedInTheWrongCta) {
  expect_objection(kPairs, "stores into one CTA and counts in another", push({.counts_at_home = true}));
}

// The owner says through a barrier of the sender's that its memory may be overwritten.
Kernel push_rounds(bool asks_first) {
  return [asks_first] {
    const int me = arch::cta_in_cluster(), peer = 1 - me;
    make_barrier(kBarrier, 1, true);
    arch::Barrier* const full = barrier_at(kBarrier);
    arch::Barrier* const free = make_barrier(kBarrier + 16, 4, true);
    for (std::uint32_t round = 0; round < 5; ++round) {
      if (thread() == 0) arch::barrier_arrive_expect_bytes(full, 128 * 16);
      if (asks_first) arch::barrier_wait(free, (round & 1) ^ 1);
      const auto value = static_cast<float>(round);
      arch::store_async(arch::in_cta(shared(thread() * 16), peer), {value, value, value, value}, arch::in_cta(shared(kBarrier), peer));
      arch::barrier_wait(full, round & 1);
      EXPECT_EQ(load_shared_float(shared(thread() * 16)), value);
      arch::named_barrier_sync(1 + arch::warp_in_cta(), 32);
      if (arch::lane() == 0) arch::barrier_arrive_in_cluster(free, peer);
    }
    sync_cluster();
  };
}
TEST(StoreAsync, OverManyRounds) {
  expect_right(kPairs, push_rounds(true));
  expect_objection(kPairs, "starts a copy that overwrites what another is still (reading|writing)", push_rounds(false));
}

Kernel bulk_push(bool fence, bool waits_for_all) {
  return [=] {
    const int me = arch::cta_in_cluster(), peer = 1 - me;
    arch::Barrier* const full = make_barrier(kBarrier, 1, true);
    arch::store_shared(shared(thread() * 4), static_cast<float>(me * 500 + thread()));
    if (fence) arch::fence_shared_for_async();
    arch::sync_cta();
    if (thread() == 0) {
      arch::barrier_arrive_expect_bytes(full, 512);
      arch::bulk_copy_to_cluster(arch::in_cta(shared(1024), peer), shared(0), 512, arch::in_cta(shared(kBarrier), peer));
    }
    arch::barrier_wait(full, 0);
    EXPECT_EQ(load_shared_float(shared(1024 + thread() * 4)), static_cast<float>(peer * 500 + thread()));
    if (waits_for_all) sync_cluster();
  };
}
TEST(BulkCopyToCluster, PushesARun) { expect_right(kPairs, bulk_push(true, true)); }
TEST(BulkCopyToCluster, NoProxyFence) {
  expect_objection(kPairs,
                   "starts a copy that reads through the asynchronous proxy what ordinary stores have written, without a proxy fence",
                   bulk_push(false, true));
}
TEST(BulkCopyToCluster, TheSenderLeavesWhileItIsRead) {
  // Some interleavings let the copy finish before the sender ends, so that nothing goes wrong in them: most must not.
  int caught = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const std::string message = objection(kPairs, with_seed(seed), [] {
      const int me = arch::cta_in_cluster();
      arch::Barrier* const full = make_barrier(kBarrier, 1, true);
      if (me == 0) {
        arch::store_shared(shared(thread() * 4), 1.0f);
        arch::fence_shared_for_async();
        arch::sync_cta();
        if (thread() == 0) arch::bulk_copy_to_cluster(arch::in_cta(shared(1024), 1), shared(0), 512, arch::in_cta(shared(kBarrier), 1));
      } else {
        if (thread() == 0) arch::barrier_arrive_expect_bytes(full, 512);
        arch::barrier_wait(full, 0);
      }
    });
    if (std::regex_search(message,
                          std::regex("copy started by.* is still under way when CTA 0 of cluster [0-9], whose shared memory it uses, "
                                     "has ended|reaches into the shared memory of CTA 1|which has ended")))
      ++caught;
    else
      EXPECT_EQ(message, "");
  }
  EXPECT_GT(caught, 10);
}

TEST(LoadCluster, TheOwnerLeavesWhileItIsRead) {
  expect_objection(kPairs,
                   "reaches into the shared memory of CTA [01] of cluster [0-9]+, which ends without knowing that this is over|"
                   "reaches into the shared memory of CTA [01], which has ended",
                   [] {
                     for (int e = 0; e < 4; ++e) arch::store_shared(shared(thread() * 16 + e * 4), 1.0f);
                     sync_cluster();
                     float values[4];
                     arch::load_cluster(arch::in_cta(shared(0), 1 - arch::cta_in_cluster()), values);
                   });
}
TEST(LoadCluster, FromACtaThatIsNotThere) {
  expect_objection(kPairs, "reaches into CTA 2 of a cluster of 2", [] {
    float values[4];
    arch::load_cluster(arch::in_cta(shared(0), 2), values);
  });
}

TEST(RemoteArrival, AfterThePeerHasLeft) {
  expect_objection(
      kPairs, "reaches into the shared memory of CTA 1( of cluster [0-9]+, which ends without knowing that this is over|, which has ended)",
      [] {
        make_barrier(kBarrier, 1, true);
        if (arch::cta_in_cluster() == 0 && thread() == 0) arch::barrier_arrive_in_cluster_relaxed(barrier_at(kBarrier), 1);
      });
}
TEST(RemoteArrival, ReleasesWhatWasWritten) {
  const auto kernel = [](bool releases) {
    return [releases] {
      const int me = arch::cta_in_cluster();
      arch::Barrier* const ready = make_barrier(kBarrier, 4, true);
      if (me == 0) {
        for (int e = 0; e < 4; ++e) arch::store_shared(shared(thread() * 16 + e * 4), static_cast<float>(thread()));
        arch::named_barrier_sync(1 + arch::warp_in_cta(), 32);
        if (arch::lane() == 0) {
          if (releases)
            arch::barrier_arrive_in_cluster(ready, 1);
          else
            arch::barrier_arrive_in_cluster_relaxed(ready, 1);
        }
      } else {
        arch::barrier_wait(ready, 0);
        float values[4];
        arch::load_cluster(arch::in_cta(shared(thread() * 16), 0), values);
        EXPECT_EQ(values[3], static_cast<float>(thread()));
      }
      sync_cluster();
    };
  };
  expect_right(kPairs, kernel(true));
  expect_objection(kPairs, "reads what it knows to be written but has not acquired: the barrier or flag between was relaxed",
                   kernel(false));
}
TEST(RemoteArrival, BarrierNotYetInitialisedThere) {
  expect_objection(kPairs, "uses (barrier 0 without knowing that it is initialised|a barrier that was never initialised)", [] {
    make_barrier(kBarrier, 128);  // its own CTA knows, the cluster does not
    arch::barrier_arrive_in_cluster(barrier_at(kBarrier), 1 - arch::cta_in_cluster());
    sync_cluster();
  });
}
TEST(RemoteArrival, NoFenceAfterInitialisation) {
  expect_objection(kPairs, "uses barrier 0 from another CTA or with the copy engine, and no fence_barrier_init has followed", [] {
    if (thread() == 0) arch::barrier_init(barrier_at(kBarrier), 128);
    sync_cluster();
    arch::barrier_arrive_in_cluster(barrier_at(kBarrier), 1 - arch::cta_in_cluster());
    sync_cluster();
  });
}

}  // namespace
}  // namespace sluice::test
