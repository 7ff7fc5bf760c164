// One line for each kernel, printed when all tests have run.
#pragma once

#include <string>
#include <vector>

namespace sluice::gpu_tests {

struct SummaryLine {
  std::string kernel;
  int cases = 0;
  int failed = 0;
  double worst_ratio = 0;  // of an error to its bound
  std::string note;
};

class Summary {
 public:
  // What runs now. A kernel that hangs is killed with its time limit: the program's last words are then this and what it knows by then.
  void begin(const std::string& running);
  const char* running() const { return running_; }

  void add(const SummaryLine& line) { lines_.push_back(line); }
  void print() const;

 private:
  std::vector<SummaryLine> lines_;
  char running_[256] = "";  // read by a signal handler
};
Summary& summary();

}  // namespace sluice::gpu_tests
