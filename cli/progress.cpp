#include "progress.hpp"

#include <cstdio>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>

namespace sluice::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kBeforeFirst = std::chrono::milliseconds(500);  // short work shows nothing
constexpr auto kBetween = std::chrono::milliseconds(100);

}  // namespace

ProgressLine::ProgressLine(std::string what)
    : what_(std::move(what)), visible_(isatty(STDERR_FILENO) == 1), begin_(Clock::now()), last_(begin_) {}

ProgressLine::~ProgressLine() {
  if (drawn_) fmt::print(stderr, "\r\033[K");
}

Progress ProgressLine::callback() {
  if (!visible_) return {};
  return [this](double done) { show(done); };
}

void ProgressLine::show(double done) {
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  if (now - begin_ < kBeforeFirst || (drawn_ && now - last_ < kBetween)) return;
  last_ = now;
  drawn_ = true;
  const double elapsed_s = std::chrono::duration<double>(now - begin_).count();
  const double left_s = done > 0 ? elapsed_s * (1 - done) / done : 0;
  fmt::print(stderr, "\r{} {:3.0f}%, {:.0f} s to go\033[K", what_, 100 * done, left_s);
  std::fflush(stderr);
}

}  // namespace sluice::cli
