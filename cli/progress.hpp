// A line on stderr that counts up during long work, if somebody sits in front of it.
#pragma once

#include <chrono>
#include <mutex>
#include <string>

#include "sluice/run.hpp"

namespace sluice::cli {

class ProgressLine {
 public:
  explicit ProgressLine(std::string what);
  ~ProgressLine();  // wipes the line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Valid as long as this object; may be called from any thread.
  Progress callback();

 private:
  void show(double done);

  std::string what_;
  bool visible_;
  bool drawn_ = false;
  std::mutex mutex_;
  std::chrono::steady_clock::time_point begin_, last_;
};

}  // namespace sluice::cli
