// gpu_tests [--small] [--gtest_filter=...]: needs a Hopper GPU.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "gemm_harness.hpp"
#include "summary.hpp"

namespace sluice::gpu_tests {

Summary& summary() {
  static Summary all;
  return all;
}

void Summary::begin(const std::string& running) { std::snprintf(running_, sizeof running_, "%s", running.c_str()); }

// What is wrong comes last: the end of a long log is what people read.
void Summary::print() const {
  int cases = 0, failed = 0;
  std::vector<SummaryLine> lines = lines_;
  std::stable_partition(lines.begin(), lines.end(), [](const SummaryLine& line) { return line.failed == 0; });
  for (const SummaryLine& line : lines) {
    cases += line.cases;
    failed += line.failed;
    std::printf("%-46s %4d cases, errors up to %4.2f of the bound: %s\n", line.kernel.c_str(), line.cases, line.worst_ratio,
                line.failed == 0 ? "right" : (std::to_string(line.failed) + " WRONG " + line.note).c_str());
  }
  if (!lines.empty()) std::printf("%zu kernels, %d cases, %d wrong\n", lines.size(), cases, failed);
}

class NotesWhatRuns : public testing::EmptyTestEventListener {
  void OnTestStart(const testing::TestInfo& test) override { summary().begin(std::string(test.test_suite_name()) + "." + test.name()); }
};

}  // namespace sluice::gpu_tests

// Nothing but what a signal handler may do: the main thread may be anywhere in the driver.
static void say_what_hangs(int) {
  const char* const running = sluice::gpu_tests::summary().running();
  const char text[] = "\ngpu_tests: stopped while running: ";
  if (write(STDOUT_FILENO, text, sizeof text - 1) > 0 && write(STDOUT_FILENO, running, std::strlen(running)) > 0)
    (void)!write(STDOUT_FILENO, "\n", 1);
  _exit(3);
}

int main(int argc, char** argv) {
  sluice::gpu_tests::summary();  // made before a signal can ask for it
  std::signal(SIGTERM, say_what_hangs);
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
  testing::UnitTest::GetInstance()->listeners().Append(new sluice::gpu_tests::NotesWhatRuns);  // GoogleTest frees it
  const int failed = RUN_ALL_TESTS();
  sluice::gpu_tests::summary().print();
  if (testing::UnitTest::GetInstance()->test_to_run_count() > 0) return failed;
  std::fprintf(stderr, "gpu_tests: the filter leaves no test; --gtest_list_tests shows them\n");
  return 2;
}
