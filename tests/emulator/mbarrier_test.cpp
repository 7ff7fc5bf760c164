// mbarriers: phases, arrivals, bytes.
#include "small_kernels.hpp"

namespace sluice::test {
namespace {

constexpr int kBarrier = 4096;  // byte offsets in shared memory
constexpr int kRunBytes = 256;

struct MBarrier : testing::Test {
  std::vector<float> source = std::vector<float>(256, 3.0f);
  emulated::Launch launch{.threads_per_cta = 256, .shared_memory_bytes = 8192, .buffers = {input("source", source)}};
};

TEST_F(MBarrier, PhasesFollowOneAnother) {
  // Warp 0 hands a value to warp 1 and takes it back, each waiting for the other's barrier, in alternating parities.
  expect_right(launch, [] {
    arch::Barrier* const there = make_barrier(kBarrier, 32);
    arch::Barrier* const back = make_barrier(kBarrier + 8, 32);
    const arch::SharedAddress place = shared(arch::lane() * 16);
    for (std::uint32_t round = 0; round < 6; ++round) {
      const auto value = static_cast<float>(round);
      if (arch::warp_in_cta() == 0) {
        arch::store_shared(place, value);
        arch::barrier_arrive(there);
        arch::barrier_wait(back, round & 1);
        EXPECT_EQ(load_shared_float(place), value + 100);
      } else if (arch::warp_in_cta() == 1) {
        arch::barrier_wait(there, round & 1);
        EXPECT_EQ(load_shared_float(place), value);
        arch::store_shared(place, value + 100);
        arch::barrier_arrive(back);
      }
    }
  });
}

TEST_F(MBarrier, OfAPhaseNotYetBegunTheOtherParityIsOver) {
  expect_right(launch, [] { arch::barrier_wait(make_barrier(kBarrier, 1), 1); });
  expect_objection(launch,
                   "deadlock.*\n.*warp 0 at tests/emulator/mbarrier_test.cpp:[0-9]+ waits for the end of a phase of parity 0 of barrier 0, "
                   "in its phase 0 with 0 of 1 arrivals and 0 bytes to come",
                   [] { arch::barrier_wait(make_barrier(kBarrier, 1), 0); });
}

TEST_F(MBarrier, WaitsForArrivalsAndForBytes) {
  expect_right(launch, [&] {
    arch::Barrier* const full = make_barrier(kBarrier, 3);
    if (thread() == 0) {
      arch::barrier_arrive_expect_bytes(full, kRunBytes);
      arch::bulk_load(shared(0), source.data(), kRunBytes, full);
    } else if (thread() < 3) {
      arch::barrier_arrive(full);
    }
    arch::barrier_wait(full, 0);
    EXPECT_EQ(load_shared_float(shared(thread() % 16 * 16)), 3.0f);
  });
}

TEST_F(MBarrier, BytesMayComeBeforeTheyAreExpected) {
  expect_right(launch, [&] {
    arch::Barrier* const full = make_barrier(kBarrier, 1);
    if (thread() == 0) {
      arch::bulk_load(shared(0), source.data(), kRunBytes, full);
      arch::barrier_arrive_expect_bytes(full, kRunBytes);
    }
    arch::barrier_wait(full, 0);
    EXPECT_EQ(load_shared_float(shared(0)), 3.0f);
  });
}

TEST_F(MBarrier, TooFewBytesExpected) {
  // Of one copy, the whole comes at once; of two, the second is still under way when the first has ended the phase.
  expect_objection(launch, "(brings|but) 128 (more bytes|bytes more)", [&] {
    arch::Barrier* const full = make_barrier(kBarrier, 1);
    if (thread() == 0) {
      arch::barrier_arrive_expect_bytes(full, kRunBytes / 2);
      arch::bulk_load(shared(0), source.data(), kRunBytes, full);
    }
    arch::barrier_wait(full, 0);
  });
  expect_objection(
      launch,
      "(copy started by|) warp 0 .*ends a phase of barrier 0 while 1 more copies that it counts are under way: fewer bytes were "
      "expected than they bring|ends with 256 bytes of copies that barrier 0 never expected",
      [&] {
        arch::Barrier* const full = make_barrier(kBarrier, 1);
        if (thread() == 0) {
          arch::barrier_arrive_expect_bytes(full, kRunBytes);
          arch::bulk_load(shared(0), source.data(), kRunBytes, full);
          arch::bulk_load(shared(512), source.data(), kRunBytes, full);
        }
        arch::barrier_wait(full, 0);
      });
}

TEST_F(MBarrier, TooManyBytesExpected) {
  expect_objection(launch, "in its phase 0 with 1 of 1 arrivals and 64 bytes to come", [&] {
    arch::Barrier* const full = make_barrier(kBarrier, 1);
    if (thread() == 0) {
      arch::barrier_arrive_expect_bytes(full, kRunBytes + 64);
      arch::bulk_load(shared(0), source.data(), kRunBytes, full);
    }
    arch::barrier_wait(full, 0);
  });
}

TEST_F(MBarrier, OneArrivalTooManyWhileBytesAreToCome) {
  expect_objection(launch, "arrives once more than expected at ring\\[0\\], in its phase 0 with 1 of 1 arrivals and 64 bytes to come", [] {
    arch::Barrier* const full = make_barrier(kBarrier, 1);
    if (thread() != 0) return;
    arch::note_barrier(&full[0], "ring", 0);
    arch::barrier_arrive_expect_bytes(full, 64);
    arch::barrier_arrive(full);
  });
}

TEST_F(MBarrier, MoreBytesThanItCanCount) {
  expect_objection(launch, "expects more bytes than barrier 0.* can count", [] {
    arch::Barrier* const full = make_barrier(kBarrier, 1);
    if (thread() == 0) arch::barrier_arrive_expect_bytes(full, 1 << 20);
  });
}

TEST_F(MBarrier, NeverInitialised) {
  expect_objection(launch, "uses a barrier that was never initialised", [] { arch::barrier_arrive(barrier_at(kBarrier)); });
}

TEST_F(MBarrier, InitialisedForNobodyTwiceOrOffItsPlace) {
  expect_objection(launch, "initialises a barrier for 0 arrivals", [] { arch::barrier_init(barrier_at(kBarrier), 0); });
  expect_objection(launch, "initialises a barrier a second time", [] { arch::barrier_init(barrier_at(kBarrier), 1); });
  expect_objection(launch, "puts a barrier at shared address [0-9]+, not a multiple of 8", [] { arch::barrier_init(barrier_at(4), 1); });
}

TEST_F(MBarrier, UsedWithoutKnowingThatItIsInitialised) {
  expect_objection(launch, "(uses barrier 0 without knowing that it is initialised|uses a barrier that was never initialised)", [] {
    if (thread() == 0) {
      arch::barrier_init(barrier_at(kBarrier), 256);
      arch::fence_barrier_init();
    }
    arch::barrier_arrive(barrier_at(kBarrier));
  });
}

TEST_F(MBarrier, HandedToTheCopyEngineWithoutTheFence) {
  expect_objection(launch, "uses barrier 0 from another CTA or with the copy engine, and no fence_barrier_init has followed", [&] {
    if (thread() == 0) arch::barrier_init(barrier_at(kBarrier), 1);
    arch::sync_cta();
    if (thread() == 0) arch::bulk_load(shared(0), source.data(), kRunBytes, barrier_at(kBarrier));
  });
}

TEST_F(MBarrier, IsNoPlaceForData) {
  expect_objection(launch, "touches a barrier as if it were data", [] {
    make_barrier(kBarrier, 1);
    if (thread() == 0) arch::store_shared(shared(kBarrier), 1.0f);
  });
}

}  // namespace
}  // namespace sluice::test
