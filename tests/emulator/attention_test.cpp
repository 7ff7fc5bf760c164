// The attention kernel's own source on the emulated machine, beside the CPU's plain loops.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "gpu/attention_case.hpp"

namespace sluice::gpu_tests {
namespace {

AttentionPlan small_plan(const AttentionProblem& problem) {
  const Result<DeviceSpec> device = find_device("h10");
  EXPECT_TRUE(device.ok());
  const Result<AttentionPlan> plan = plan_attention(problem, *device);
  EXPECT_TRUE(plan.ok()) << plan.error().message;
  return *plan;
}

TEST(AttentionOnEmulator, AgreesWithTheCpu) {
  constexpr std::array kAsynchronies = {Asynchrony::eager, Asynchrony::lazy, Asynchrony::mixed};
  std::uint64_t seed = 0;
  for (const AttentionCase& each : attention_cases(true)) {
    ++seed;
    AttentionOperands got = make_operands(each, seed), expected = make_operands(each, seed);
    const Status on_cpu = attention_on_cpu(expected.problem, expected.arguments());
    ASSERT_TRUE(on_cpu.ok()) << describe(each) << ": " << on_cpu.error().message;
    AttentionPlan plan = small_plan(got.problem);
    plan.ctas = 1 + static_cast<int>(seed % 4);
    const Status status =
        attention_on_emulator(plan, got.arguments(), {.seed = seed, .asynchrony = kAsynchronies[seed % kAsynchronies.size()]});
    ASSERT_TRUE(status.ok()) << describe(each) << ": " << status.error().message;
    ASSERT_EQ(differences(got, expected), "");
  }
}

// Many chunks, in runs that hang on the number of CTAs, of which one alone or some are resident: whoever brings them together waits for
// nobody that has not begun, and no bit of the result shows who did what.
TEST(AttentionOnEmulator, ChunksMeetWhateverTheOrder) {
  const AttentionCase each{{.query_len = 2, .heads_q = 4, .heads_kv = 1, .head_size = 64, .lse = true}, {1500, 300, 2600, 6000}, 0};
  AttentionOperands expected = make_operands(each, 5);
  ASSERT_TRUE(attention_on_cpu(expected.problem, expected.arguments()).ok());
  std::vector<std::uint16_t> first;
  for (const auto [ctas, resident] : {std::pair{3, 1}, {3, 2}, {3, 0}, {1, 0}, {2, 0}, {4, 0}, {4, 2}}) {
    AttentionOperands got = make_operands(each, 5);
    AttentionPlan plan = small_plan(got.problem);
    ASSERT_GE(plan.ctas, ctas);
    plan.ctas = ctas;
    const Status status =
        attention_on_emulator(plan, got.arguments(), {.seed = static_cast<std::uint64_t>(ctas + resident), .resident_clusters = resident});
    ASSERT_TRUE(status.ok()) << status.error().message;
    ASSERT_EQ(differences(got, expected), "");
    if (first.empty()) first = got.o;
    EXPECT_EQ(got.o, first) << "the result depends on who did what when";
  }
}

// A sequence's result is the same, bit by bit, alone and beside others.
TEST(AttentionOnEmulator, BatchesDoNotMatter) {
  const AttentionCase all{{.heads_q = 4, .heads_kv = 1, .head_size = 64, .lse = true}, {900, 1300, 40}, 0};
  AttentionOperands batch = make_operands(all, 9);
  ASSERT_TRUE(attention_on_emulator(small_plan(batch.problem), batch.arguments()).ok());
  const std::size_t q_elems = 4 * 64, kv_bytes = static_cast<std::size_t>(batch.problem.max_kv_len) * 64 * 2;
  for (std::size_t b = 0; b < 3; ++b) {
    AttentionProblem alone = batch.problem;
    alone.batch = 1;
    std::vector<std::uint16_t> o(q_elems, 0xffff);
    std::vector<float> lse(4);
    const AttentionArguments arguments{.q = batch.q.data() + b * q_elems,
                                       .k = batch.k.data() + b * kv_bytes,
                                       .v = batch.v.data() + b * kv_bytes,
                                       .o = o.data(),
                                       .lse = lse.data(),
                                       .lengths = batch.lengths.data() + b};
    const Status status = attention_on_emulator(small_plan(alone), arguments, {.seed = b + 7});
    ASSERT_TRUE(status.ok()) << status.error().message;
    EXPECT_TRUE(std::equal(o.begin(), o.end(), batch.o.begin() + static_cast<std::ptrdiff_t>(b * q_elems))) << b;
  }
}

// What a block table or the lengths say wrongly is seen, and nothing outside is read.
TEST(AttentionOnEmulator, FaultsAreReported) {
  const AttentionCase each{{.heads_q = 1, .heads_kv = 1, .head_size = 64, .page_size = 16, .lse = true}, {100, 60}, 0};
  AttentionOperands got = make_operands(each, 3);
  got.block_table[2] = 1000;
  AttentionOperands expected = got;
  ASSERT_TRUE(attention_on_cpu(expected.problem, expected.arguments()).ok());
  const Status status = attention_on_emulator(small_plan(got.problem), got.arguments());
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_EQ(got.fault, 2u);
  EXPECT_EQ(differences(got, expected), "");
  got = make_operands(each, 3);
  got.lengths[1] = 101;
  ASSERT_TRUE(attention_on_emulator(small_plan(got.problem), got.arguments()).ok());
  EXPECT_EQ(got.fault, 1u);
}

TEST(AttentionOnEmulator, RefusesWhatTheGpuWould) {
  const AttentionCase each{{.heads_q = 1, .heads_kv = 1, .head_size = 64, .lse = true}, {100}, 0};
  AttentionOperands operands = make_operands(each, 1);
  AttentionArguments arguments = operands.arguments();
  arguments.v = nullptr;
  const AttentionPlan plan = small_plan(operands.problem);
  EXPECT_EQ(attention_on_emulator(plan, arguments).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(attention_on_emulator(plan, operands.arguments(), {.resident_clusters = -1}).error().code, ErrorCode::invalid_argument);
  AttentionPlan wrong = plan;
  wrong.rows = 16;
  EXPECT_EQ(attention_on_emulator(wrong, operands.arguments()).error().code, ErrorCode::invalid_argument);
  wrong = plan;
  wrong.ctas = 1 << 16;
  EXPECT_EQ(attention_on_emulator(wrong, operands.arguments()).error().code, ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace sluice::gpu_tests
