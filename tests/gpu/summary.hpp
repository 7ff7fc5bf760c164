// One line for each kernel, printed when all tests have run.
#pragma once

#include <string>
#include <vector>

namespace sluice::gpu_tests {

class Summary {
 public:
  void add(const std::string& kernel, int cases, int failed, const std::string& note);
  void print() const;

 private:
  struct Line {
    std::string kernel;
    int cases;
    int failed;
    std::string note;
  };
  std::vector<Line> lines_;
};
Summary& summary();

}  // namespace sluice::gpu_tests
