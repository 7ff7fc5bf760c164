// Runs one kernel on the emulated machine over seeds, for planted_bugs_test.py: linked with the object of a changed kernel, which
// stands in for the one in libsluice.a. Prints what is wrong with the first run that is, and ends with 1; or ends with 0.
//
//   mutant_driver KERNEL_NAME M N K BATCH TYPE_D BETA OFFSET SCHEDULER CLAIM SPLITS REDUCTION CONSTANT GROUPS SEEDS
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "mutant_attention.hpp"
#include "mutant_general.hpp"
#include "placed_operands.hpp"

int main(int argc, char** argv) {
  using namespace sluice;
  if (argc > 1 && std::string_view(argv[1]) == "attention") return test::run_mutant_attention(argc, argv);
  if (argc > 1 && std::string_view(argv[1]) == "general") return test::run_mutant_general(argc, argv);
  if (argc != 16) return 2;
  gpu_tests::GemmCase gemm_case{.what = "mutant"};
  gemm_case.problem.m = std::atoi(argv[2]);
  gemm_case.problem.n = std::atoi(argv[3]);
  gemm_case.problem.k = std::atoi(argv[4]);
  gemm_case.problem.batch = std::atoi(argv[5]);
  gemm_case.problem.type_d = parse_data_type(argv[6]).value();
  gemm_case.problem.epilogue.beta = static_cast<float>(std::atof(argv[7]));
  gemm_case.offset_d_elems = std::atoi(argv[8]);
  const std::string_view constant = argv[13];
  gemm_case.problem.constant_a = constant == "a" || constant == "both";
  gemm_case.problem.constant_b = constant == "b" || constant == "both";
  if (std::string_view groups = argv[14]; groups != "none") {  // where each begins, and where the last ends; behind a k: along K
    gemm_case.problem.grouping = groups.front() == 'k' ? Grouping::along_k : Grouping::ragged;
    if (groups.front() == 'k') groups.remove_prefix(1);
    for (std::size_t at = 0; at < groups.size(); at = std::min(groups.find(',', at), groups.size() - 1) + 1)
      gemm_case.groups.push_back(std::atoi(groups.data() + at));
  }
  gemm_case.exactness = bench::Exactness::exact;
  for (const KernelConfig& kernel : kernel_list()) {
    if (name(kernel) != argv[1]) continue;
    if (is_fp8(kernel.type_b)) {
      gemm_case.problem.scaling_a = Scaling::per_vector_128;
      gemm_case.problem.scaling_b = Scaling::per_block_128;
      gemm_case.problem.scale_layout_a = Layout::column_major;
      gemm_case.offset_scale_elems = 0;
      if (is_fp8(gemm_case.problem.type_d)) gemm_case.problem.scaling_d = Scaling::per_vector_128;
    }
    PlanOptions options;
    options.kernel_name = argv[1];
    options.scheduler = parse_scheduler(argv[9]).value();
    options.claim = parse_work_claim(argv[10]).value();
    options.splits = std::atoi(argv[11]);
    if (options.splits > 0) options.reduction = parse_reduction(argv[12]).value();
    const Result<Plan> plan = sluice::plan(gpu_tests::problem_for(kernel, gemm_case), find_device("h10").value(), options);
    if (!plan) return std::printf("no plan: %s\n", plan.error().message.c_str()), 2;
    test::PlacedOperands operands(plan->problem, gemm_case, 1);
    for (int seed = 0; seed < std::atoi(argv[15]); ++seed) {
      constexpr std::array kAll = {Asynchrony::lazy, Asynchrony::mixed, Asynchrony::eager};
      operands.poison();
      const Status status =
          run_on_emulator(*plan, operands.arguments(),
                          {.seed = static_cast<std::uint64_t>(seed), .asynchrony = kAll[static_cast<std::size_t>(seed) % kAll.size()]});
      const std::string wrong = status ? operands.judge() : status.error().message;
      if (wrong.empty()) continue;
      std::printf("%s%s\n", status ? "wrong result: " : "", wrong.c_str());
      return 1;
    }
    return 0;
  }
  return std::printf("no kernel %s in the list\n", argv[1]), 2;
}
