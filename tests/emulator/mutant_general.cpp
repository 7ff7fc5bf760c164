#include "mutant_general.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "gpu/general_case.hpp"
#include "sluice/sluice.hpp"

namespace sluice::test {
namespace {

int run_case(const gpu_tests::GeneralCase& each, const KernelConfig& kernel, int seeds) {
  const Result<Plan> plan = sluice::plan(problem_of(each), find_device("h10").value(), options_of(each, kernel));
  if (!plan) return std::printf("no plan: %s\n", plan.error().message.c_str()), 2;
  for (int seed = 0; seed < seeds; ++seed) {
    const gpu_tests::GeneralMemory before(each, static_cast<std::uint64_t>(seed));
    gpu_tests::GeneralMemory after = before;
    const std::vector<GroupArguments> groups = after.groups(after.data());
    const Status status =
        run_on_emulator(*plan, {.group_arguments = groups.data()},
                        {.seed = static_cast<std::uint64_t>(seed), .asynchrony = seed % 2 == 0 ? Asynchrony::lazy : Asynchrony::eager});
    const std::string wrong = status ? before.wrong_in(after) : status.error().message;
    if (!wrong.empty()) return std::printf("%s%s\n", status ? "wrong result: " : "", wrong.c_str()), 1;
  }
  return 0;
}

}  // namespace

int run_mutant_general(int argc, char** argv) {
  if (argc != 5) return 2;
  for (const KernelConfig& kernel : kernel_list()) {
    if (name(kernel) != argv[2]) continue;
    for (const gpu_tests::GeneralCase& each : gpu_tests::general_cases(kernel, true)) {
      std::string title = each.name;
      title.erase(std::remove(title.begin(), title.end(), ' '), title.end());
      if (title == argv[3]) return run_case(each, kernel, std::atoi(argv[4]));
    }
  }
  return std::printf("no kernel %s, or no case %s\n", argv[2], argv[3]), 2;
}

}  // namespace sluice::test
