// The machine as a whole: what a seed fixes, how clusters take turns, what a deadlock says.
#include <algorithm>
#include <set>
#include <tuple>

#include "small_kernels.hpp"

namespace sluice::test {
namespace {

constexpr int kBarrier = 4096;

// A producer and a consumer with a ring of two stages: copies in, sums out.
struct SmallPipeline {
  static constexpr int kStages = 2, kTiles = 6, kStageBytes = 512;
  std::vector<float> source = std::vector<float>(static_cast<std::size_t>(3 * kTiles * 128));
  std::vector<float> sums = std::vector<float>(3 * 128);
  emulated::Launch launch{
      .clusters = 3, .threads_per_cta = 256, .shared_memory_bytes = 8192, .buffers = {input("source", source), output("sums", sums)}};
  bool releases = true;

  SmallPipeline() {
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<float>(i % 17);
  }

  void operator()() const {
    arch::wait_for_predecessor();
    arch::Barrier* const full = barrier_at(kBarrier);
    arch::Barrier* const empty = full + kStages;
    if (thread() == 0) {
      for (int i = 0; i < kStages; ++i) {
        arch::barrier_init(full + i, 1);
        arch::barrier_init(empty + i, 4);
      }
      for (int i = 0; i < kStages; ++i) {
        arch::note_barrier(&full[i], "full", i);
        arch::note_barrier(&empty[i], "empty", i);
      }
      arch::fence_barrier_init();
    }
    arch::sync_cta();
    const int cta = arch::cluster_in_grid();
    const bool produces = arch::warpgroup_in_cta() == 0;
    arch::note_role(produces ? "producer" : "consumer");
    arch::note_work(cta, 0, 0, 0, kTiles);
    if (produces && thread() != 0) return;
    float sum = 0;
    for (int tile = 0; tile < kTiles; ++tile) {
      const int stage = tile % kStages;
      const auto parity = static_cast<std::uint32_t>(tile / kStages) & 1;
      if (produces) {
        arch::barrier_wait(empty + stage, parity ^ 1);
        arch::barrier_arrive_expect_bytes(full + stage, kStageBytes);
        arch::bulk_load(shared(stage * kStageBytes), source.data() + (cta * kTiles + tile) * 128, kStageBytes, full + stage);
      } else {
        arch::barrier_wait(full + stage, parity);
        sum += load_shared_float(shared(stage * kStageBytes + thread() % 128 * 4));
        arch::named_barrier_sync(1 + arch::warp_in_cta(), 32);
        if (arch::lane() == 0 && releases) arch::barrier_arrive(empty + stage);
      }
    }
    if (!produces) arch::store_global(const_cast<float*>(sums.data()) + cta * 128 + thread() % 128, sum);
  }
};

TEST(Machine, TheSameSeedIsTheSameRun) {
  SmallPipeline pipeline;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto once = [&] {
      const emulated::Statistics s = emulated::run(pipeline.launch, with_seed(seed), [&] { pipeline(); });
      return std::tuple(s.steps, s.copies, s.multiplications);
    };
    EXPECT_EQ(once(), once()) << "seed " << seed;
  }
}

TEST(Machine, AnotherSeedIsAnotherRunWithTheSameResult) {
  SmallPipeline pipeline;
  std::set<std::uint64_t> steps;
  std::vector<float> first;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    std::fill(pipeline.sums.begin(), pipeline.sums.end(), -1.0f);
    const emulated::Statistics s = emulated::run(pipeline.launch, with_seed(seed, static_cast<int>(seed % 4)), [&] { pipeline(); });
    EXPECT_EQ(s.copies, 18u);
    steps.insert(s.steps);
    if (seed == 0) first = pipeline.sums;
    EXPECT_EQ(pipeline.sums, first) << "seed " << seed;
  }
  EXPECT_GT(steps.size(), 20u) << "seeds should interleave differently";
}

TEST(Machine, AtMostTheResidentClustersRunAtOnce) {
  for (const int resident : {1, 2, 3, 7}) {
    int running = 0, most = 0, done = 0;
    double progress = 0;
    emulated::Launch launch{.clusters = 6, .ctas_per_cluster = 2, .threads_per_cta = 32, .progress = [&](double share) {
                              EXPECT_GT(share, progress);
                              progress = share;
                            }};
    emulated::run(launch, with_seed(5, resident), [&] {
      const bool first = arch::cta_in_cluster() == 0 && thread() == 0;
      if (first) most = std::max(most, ++running);
      for (int i = 0; i < 5; ++i) arch::named_barrier_sync(1, 32);
      if (first) --running, ++done;
    });
    EXPECT_EQ(done, 6);
    EXPECT_LE(most, resident);
    EXPECT_EQ(progress, 1.0);
  }
}

TEST(Machine, NothingToRun) {
  EXPECT_EQ(emulated::run({.clusters = 0}, {}, [] {}).steps, 0u);
}

// Each message says how to see it again, and so one does.
TEST(Machine, AMessageCanBeReplayed) {
  SmallPipeline pipeline;
  pipeline.releases = false;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const std::string message = objection(pipeline.launch, with_seed(seed), [&] { pipeline(); });
    EXPECT_NE(message.find("replay: seed " + std::to_string(seed) + ", 3 of 3 clusters resident, asynchrony "), std::string::npos)
        << message;
    EXPECT_EQ(objection(pipeline.launch, with_seed(seed), [&] { pipeline(); }), message);
    // The message names the asynchrony that was drawn: asking for it is the same run.
    for (const Asynchrony drawn : {Asynchrony::eager, Asynchrony::lazy, Asynchrony::mixed})
      if (message.find(std::string("asynchrony ") + to_string(drawn)) != std::string::npos) {
        emulated::Options again = with_seed(seed);
        again.asynchrony = drawn;
        EXPECT_EQ(objection(pipeline.launch, again, [&] { pipeline(); }), message);
      }
  }
}

TEST(Deadlock, NamesEveryWaitingRoleItsBarrierAndItsTile) {
  SmallPipeline pipeline;
  pipeline.releases = false;
  const std::string message = objection(pipeline.launch, with_seed(0), [&] { pipeline(); });
  const auto says = [&](const std::string& part) {
    EXPECT_TRUE(std::regex_search(message, std::regex(part))) << "wanted: " << part << "\ngot: " << message;
  };
  says("^deadlock: nobody can go on, and no copy or wgmma is under way\n");
  for (const char* cluster : {"0", "1", "2"}) {
    const std::string who = std::string("cluster ") + cluster;
    const std::string tile = std::string(", at work tile \\(m ") + cluster + ", n 0, group 0, k-tiles 0 to 6\\)";
    says(who +
         " producer warp 0 at tests/emulator/machine_test.cpp:[0-9]+ waits for the end of a phase of parity 0 of empty\\[0\\], in its "
         "phase 0 with 0 of 4 arrivals and 0 bytes to come" +
         tile);
    for (const char* warp : {"4", "5", "6", "7"})
      says(who + " consumer warp " + warp +
           " at tests/emulator/machine_test.cpp:[0-9]+ waits for the end of a phase of parity 1 of full\\[0\\], in its phase 1 with 0 of 1 "
           "arrivals and 0 bytes to come" +
           tile + " \\[32 threads\\]");
  }
}

TEST(Deadlock, IsFoundThoughOthersHaveEnded) {
  const emulated::Launch launch{.clusters = 3, .ctas_per_cluster = 2, .threads_per_cta = 64, .shared_memory_bytes = 4096};
  expect_objection(
      launch, "deadlock.*\n  cluster 1 CTA 1 warp 1 at tests/emulator/machine_test.cpp:[0-9]+ waits for named barrier 3 \\(32 of 64", [] {
        if (arch::cluster_in_grid() == 1 && arch::cta_in_cluster() == 1 && arch::warp_in_cta() == 1) arch::named_barrier_sync(3, 64);
      });
}

TEST(Machine, RunsWithinARun) {
  int inner = 0, outer = 0;
  emulated::run({.threads_per_cta = 32}, with_seed(1), [&] {
    arch::named_barrier_sync(1, 32);
    if (arch::lane() == 7) emulated::run({.threads_per_cta = 32}, with_seed(2), [&] { inner += arch::lane(); });
    arch::named_barrier_sync(1, 32);
    outer += arch::lane();
  });
  EXPECT_EQ(inner, 496);
  EXPECT_EQ(outer, 496);
}

}  // namespace
}  // namespace sluice::test
