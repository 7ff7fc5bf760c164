// gpu_tests [--small] [--gtest_filter=...]: needs a Hopper GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "gemm_harness.hpp"
#include "summary.hpp"

namespace sluice::gpu_tests {

Summary& summary() {
  static Summary all;
  return all;
}

void Summary::add(const std::string& kernel, int cases, int failed, const std::string& note) {
  lines_.push_back({kernel, cases, failed, note});
}

// What is wrong comes last: the end of a long log is what people read.
void Summary::print() const {
  int cases = 0, failed = 0;
  std::vector<Line> lines = lines_;
  std::stable_partition(lines.begin(), lines.end(), [](const Line& line) { return line.failed == 0; });
  for (const Line& line : lines) {
    cases += line.cases;
    failed += line.failed;
    std::printf("%-44s %4d cases  %s\n", line.kernel.c_str(), line.cases,
                line.failed == 0 ? "right" : (std::to_string(line.failed) + " WRONG " + line.note).c_str());
  }
  if (!lines_.empty()) std::printf("%zu kernels, %d cases, %d wrong\n", lines_.size(), cases, failed);
}

}  // namespace sluice::gpu_tests

int main(int argc, char** argv) {
  testing::GTEST_FLAG(brief) = true;  // failures and the summary; --gtest_brief=0 shows each test
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--small") == 0) {
      sluice::gpu_tests::settings().small = true;
    } else {
      std::fprintf(stderr, "gpu_tests: '%s' is no option; there is --small, and GoogleTest's own (--help)\n", argv[i]);
      return 2;
    }
  }
  const sluice::Result<sluice::DeviceSpec> device = sluice::current_device();
  if (!device) {
    std::fprintf(stderr, "gpu_tests: %s\n", device.error().message.c_str());
    return 2;
  }
  sluice::gpu_tests::settings().device = *device;
  const int failed = RUN_ALL_TESTS();
  sluice::gpu_tests::summary().print();
  if (testing::UnitTest::GetInstance()->test_to_run_count() > 0) return failed;
  std::fprintf(stderr, "gpu_tests: the filter leaves no test; --gtest_list_tests shows them\n");
  return 2;
}
