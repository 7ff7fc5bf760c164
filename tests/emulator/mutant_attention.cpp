#include "mutant_attention.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "gpu/attention_case.hpp"

namespace sluice::test {

int run_mutant_attention(int argc, char** argv) {
  if (argc != 7) return 2;
  gpu_tests::AttentionCase attention_case{
      {.query_len = std::atoi(argv[3]), .heads_q = 4, .heads_kv = 1, .head_size = std::atoi(argv[2]), .lse = true, .constant_cache = true},
      {},
      0};
  attention_case.problem.window = std::atoi(argv[4]);
  for (const char* length = argv[5]; length != nullptr; length = std::strchr(length, ',')) {
    length += *length == ',' ? 1 : 0;
    attention_case.lengths.push_back(std::atoi(length));
  }
  gpu_tests::AttentionOperands expected = gpu_tests::make_operands(attention_case, 1);
  if (const Status s = attention_on_cpu(expected.problem, expected.arguments()); !s)
    return std::printf("%s\n", s.error().message.c_str()), 2;
  const Result<AttentionPlan> plan = plan_attention(expected.problem, find_device("h10").value());
  if (!plan) return std::printf("no plan: %s\n", plan.error().message.c_str()), 2;
  for (int seed = 0; seed < std::atoi(argv[6]); ++seed) {
    gpu_tests::AttentionOperands got = gpu_tests::make_operands(attention_case, 1);
    const Status status = attention_on_emulator(*plan, got.arguments(),
                                                {.seed = static_cast<std::uint64_t>(seed),
                                                 .asynchrony = seed % 2 == 0 ? Asynchrony::lazy : Asynchrony::eager,
                                                 .resident_clusters = seed % 3 == 2 ? 1 : 0});
    const std::string wrong = status ? gpu_tests::differences(got, expected) : status.error().message;
    if (!wrong.empty()) return std::printf("%s\n", wrong.c_str()), 1;
  }
  return 0;
}

}  // namespace sluice::test
