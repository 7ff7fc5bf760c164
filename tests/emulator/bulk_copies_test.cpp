// Runs of bytes, bulk groups, and the two proxies: what must lie between ordinary accesses and copies.
#include <algorithm>

#include "small_kernels.hpp"

namespace sluice::test {
namespace {

constexpr int kBarrier = 8192;
constexpr int kBytes = 1024;

struct BulkCopies : testing::Test {
  alignas(16) std::vector<float> source = std::vector<float>(1024);
  std::vector<float> target = std::vector<float>(1024);
  emulated::Launch launch{
      .threads_per_cta = 128, .shared_memory_bytes = 12288, .buffers = {input("source", source), output("target", target)}};

  BulkCopies() {
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<float>(i);
  }
};

void store_mine(int bytes, float value) { arch::store_shared(shared(bytes + thread() * 4), value); }

TEST_F(BulkCopies, ThereAndBack) {
  expect_right(
      launch,
      [&] {
        arch::Barrier* const full = make_barrier(kBarrier, 1);
        if (thread() != 0) return;
        arch::barrier_arrive_expect_bytes(full, 2 * kBytes);
        arch::bulk_load(shared(0), source.data(), kBytes, full);
        arch::bulk_load(shared(kBytes), source.data() + 512, kBytes, full);
        arch::barrier_wait(full, 0);
        EXPECT_EQ(load_shared_float(shared(kBytes)), 512.0f);
        arch::bulk_store(target.data(), shared(kBytes), kBytes);
        arch::bulk_store(target.data() + 256, shared(0), 64);
        arch::bulk_commit();
        arch::bulk_wait<0>();
      },
      [&] {
        for (std::size_t i = 0; i < 1024; ++i) {
          const float expected = i < 256 ? source[i + 512] : i < 272 ? source[i - 256] : 0.0f;
          ASSERT_EQ(target[i], expected) << i;
        }
        std::fill(target.begin(), target.end(), 0.0f);
      });
}

TEST_F(BulkCopies, AddIntoGlobalMemory) {
  launch.clusters = 6;
  expect_right(
      launch,
      [&] {
        store_mine(0, static_cast<float>(thread()));
        arch::fence_shared_for_async();
        arch::sync_cta();
        if (thread() != 0) return;
        arch::bulk_reduce_add(target.data(), shared(0), 512);
        arch::bulk_commit();
        arch::bulk_wait_read<0>();
      },
      [&] {
        for (std::size_t i = 0; i < 128; ++i) ASSERT_EQ(target[i], 6.0f * static_cast<float>(i));
        std::fill(target.begin(), target.end(), 0.0f);
      });
}

// A ring of two buffers, each filled anew when the copy engine has read it. What is left out is what is wrong.
struct Ring {
  bool proxy_fence = true, sync_before_copy = true, wait_before_reuse = true, sync_after_wait = true, wait_at_end = true, commit = true;
};
Kernel ring_of_two(std::vector<float>& target, const Ring& has) {
  return [&target, has] {
    for (int round = 0; round < 6; ++round) {
      const int buffer = round % 2 * 512;
      if (thread() == 0 && has.wait_before_reuse) arch::bulk_wait_read<1>();
      if (has.sync_after_wait) arch::sync_cta();
      store_mine(buffer, static_cast<float>(round * 1000 + thread()));
      if (has.proxy_fence) arch::fence_shared_for_async();
      if (has.sync_before_copy) arch::sync_cta();
      if (thread() != 0) continue;
      arch::bulk_store(target.data() + round * 128, shared(buffer), 512);
      if (has.commit) arch::bulk_commit();
    }
    if (thread() == 0 && has.wait_at_end) arch::bulk_wait_read<0>();
  };
}

TEST_F(BulkCopies, ARingOfTwoBuffers) {
  expect_right(launch, ring_of_two(target, {}), [&] {
    for (std::size_t i = 0; i < 6 * 128; ++i) ASSERT_EQ(target[i], static_cast<float>(i / 128 * 1000 + i % 128));
    std::fill(target.begin(), target.end(), 0.0f);
  });
}
TEST_F(BulkCopies, NoProxyFence) {
  expect_objection(
      launch,
      "starts a copy that reads through the asynchronous proxy what ordinary stores have written, without a proxy fence by the "
      "writer after them.*the other side is the store by",
      ring_of_two(target, {.proxy_fence = false}));
}
TEST_F(BulkCopies, NoSyncBeforeTheCopy) {
  expect_objection(launch,
                   "starts a copy that reads (what another thread is writing: no synchronisation|shared memory that nobody has written)",
                   ring_of_two(target, {.sync_before_copy = false}));
}
TEST_F(BulkCopies, NoWaitBeforeReuse) {
  expect_objection(launch, "overwrites what another is still reading: nobody has said that the reading is over.*copy started by",
                   ring_of_two(target, {.wait_before_reuse = false}));
}
TEST_F(BulkCopies, NoSyncAfterTheWait) {
  // Warp 0 knows that its copy is over, the others must be told.
  expect_objection(launch, "overwrites what another is still (reading|writing)", ring_of_two(target, {.sync_after_wait = false}));
}
TEST_F(BulkCopies, NoWaitAtTheEnd) {
  expect_objection(launch, "ends without having waited until the copy engine has read its shared memory|is still under way when CTA 0",
                   ring_of_two(target, {.wait_at_end = false}));
}
TEST_F(BulkCopies, NeverCommitted) {
  expect_objection(launch, "ends with copies that were never committed to a bulk group|overwrites what another is still reading",
                   ring_of_two(target, {.commit = false}));
}

TEST_F(BulkCopies, ReadBeforeTheBarrier) {
  expect_objection(launch, "reads what a copy is still filling: no wait for its full barrier lies between.*copy started by warp 0", [&] {
    arch::Barrier* const full = make_barrier(kBarrier, 1);
    if (thread() != 0) return;
    arch::barrier_arrive_expect_bytes(full, kBytes);
    arch::bulk_load(shared(0), source.data(), kBytes, full);
    load_shared_float(shared(0));
    arch::barrier_wait(full, 0);
  });
}

// A warp alone, which reads what has come and asks for more in its place.
auto refill(const float* source, void (*between)(arch::Barrier* empty)) {
  return [=] {
    arch::Barrier *const full = make_barrier(kBarrier, 1), *const empty = make_barrier(kBarrier + 8, 32);
    if (thread() >= 32) return;
    for (std::uint32_t round = 0; round < 2; ++round) {
      if (thread() == 0) {
        arch::barrier_arrive_expect_bytes(full, kBytes);
        arch::bulk_load(shared(0), source, kBytes, full);
      }
      arch::barrier_wait(full, round);
      EXPECT_EQ(load_shared_float(shared(thread() * 16)), static_cast<float>(thread() * 4));
      if (round == 0) between(empty);
      arch::sync_warp();
    }
  };
}
TEST_F(BulkCopies, LoadsOfTheSameWarpMayStillBeOnTheirWay) {
  expect_objection(launch, "starts a copy that overwrites what its own warp is still reading: no fence and no barrier.*read by warp 0",
                   refill(source.data(), [](arch::Barrier*) {}));
}
TEST_F(BulkCopies, LoadsOfTheSameWarpBeforeAFence) {
  expect_right(launch, refill(source.data(), [](arch::Barrier*) { arch::fence_shared_for_async(); }), [] {});
}
TEST_F(BulkCopies, LoadsOfTheSameWarpBeforeABarrier) {
  expect_right(launch,
               refill(source.data(),
                      [](arch::Barrier* empty) {
                        arch::barrier_arrive(empty);
                        arch::barrier_wait(empty, 0);
                      }),
               [] {});
}

TEST_F(BulkCopies, FilledAgainWhileItIsRead) {
  expect_objection(launch, "starts a copy that overwrites what another is still reading.*the other side is the read by warp [0-3]", [&] {
    arch::Barrier* const full = make_barrier(kBarrier, 1);
    for (std::uint32_t round = 0; round < 2; ++round) {
      if (thread() == 0) {
        arch::barrier_arrive_expect_bytes(full, kBytes);
        arch::bulk_load(shared(0), source.data(), kBytes, full);
      }
      arch::barrier_wait(full, round);
      load_shared_float(shared(thread() % 4 * 16));
      arch::named_barrier_sync(1 + arch::warp_in_cta(), 32);  // orders the lanes of each warp, and no two warps
    }
  });
}

TEST_F(BulkCopies, StillUnderWayAtTheEnd) {
  emulated::Options late = with_seed(1);
  late.asynchrony = Asynchrony::lazy;
  const std::string message = objection(launch, late, [&] {
    arch::Barrier* const full = make_barrier(kBarrier, 1);
    if (thread() != 0) return;
    arch::barrier_arrive_expect_bytes(full, kBytes);
    arch::bulk_load(shared(0), source.data(), kBytes, full);
  });
  EXPECT_NE(message.find("is still under way when CTA 0 of cluster 0, whose shared memory it uses, has ended"), std::string::npos)
      << message;
}

TEST_F(BulkCopies, AddressesAndBounds) {
  const auto wrong = [&](const char* expected, const std::function<void(arch::Barrier*)>& copy) {
    expect_objection(launch, expected, [&] {
      arch::Barrier* const full = make_barrier(kBarrier, 1);
      if (thread() != 0) return;
      for (int i = 0; i < 64; i += 16) store_words(shared(i), source.data());
      arch::fence_shared_for_async();
      copy(full);
    });
  };
  wrong("copies 24 bytes; bulk copies move multiples of 16", [&](auto* b) { arch::bulk_load(shared(0), source.data(), 24, b); });
  wrong("copies 0 bytes", [&](auto* b) { arch::bulk_load(shared(0), source.data(), 0, b); });
  wrong("a global address that is not a multiple of 16", [&](auto* b) { arch::bulk_load(shared(0), source.data() + 1, 32, b); });
  wrong("copies into shared address [0-9]+, not a multiple of 16", [&](auto* b) { arch::bulk_load(shared(8), source.data(), 32, b); });
  wrong("copies into 64 bytes at byte 12272 of shared memory, outside the CTA's 12288",
        [&](auto* b) { arch::bulk_load(shared(12272), source.data(), 64, b); });
  wrong("reads 64 bytes of global memory outside every operand: byte 4080 of source, which has 4096",
        [&](auto* b) { arch::bulk_load(shared(0), source.data() + 1020, 64, b); });
  wrong("writes into source, which is an input", [&](auto*) { arch::bulk_store(source.data(), shared(0), 64); });
  wrong("starts a copy that reads shared memory that nobody has written",
        [&](auto*) { arch::bulk_store(target.data(), shared(2048), 64); });
}

TEST_F(BulkCopies, OrdinaryAccessesAreChecked) {
  expect_objection(launch, "writes 4 bytes at byte 12288 of shared memory, outside the CTA's 12288",
                   [] { arch::store_shared(shared(12288), 1.0f); });
  expect_objection(launch, "reads shared address [0-9]+, not a multiple of 4", [] { load_shared_float(shared(2)); });
  expect_objection(launch, "reads shared memory that nobody has written", [] { load_shared_float(shared(0)); });
}

TEST_F(BulkCopies, WithoutDiagnosisOnlyTheResultTells) {
  emulated::Options options = with_seed(2);
  options.diagnose = false;
  EXPECT_EQ(objection(launch, options, ring_of_two(target, {.proxy_fence = false})), "");
}

}  // namespace
}  // namespace sluice::test
