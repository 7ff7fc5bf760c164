#include "bench/console.hpp"

#include <unistd.h>

#include <cstdio>
#include <exception>
#include <fstream>

#include <fmt/format.h>

#include "bench/report.hpp"

namespace sluice::bench {

void show_progress(std::size_t done, std::size_t all, const std::string& what) {
  const bool terminal = isatty(fileno(stderr)) != 0;
  if (terminal) fmt::print(stderr, "\r\033[K[{}/{}] {}", done + 1, all, what);
  if (!terminal && (done % 10 == 0 || done + 1 == all)) fmt::print(stderr, "[{}/{}] {}\n", done + 1, all, what);
  std::fflush(stderr);
}

void end_progress() {
  if (isatty(fileno(stderr)) != 0) fmt::print(stderr, "\r\033[K");
}

Status write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) return Error{ErrorCode::io, "cannot write " + path + "; choose another place with --out"};
  return Nothing{};
}

int run_reported(std::string_view command, bool json, const std::function<Result<int>()>& work) {
  const auto report = [&](const Error& error) {
    fmt::print(stderr, "sluice {}: {}\n", command, error.message);
    if (json) fmt::print("{}", error_to_json(error, kCouldNotRun));
    return kCouldNotRun;
  };
  try {
    const Result<int> outcome = work();
    return outcome ? *outcome : report(outcome.error());
  } catch (const std::exception& failure) {
    return report({ErrorCode::cuda, failure.what()});
  }
}

void say_cublaslt_is_missing(const Error& why) {
  fmt::print(stderr, "cuBLASLt is missing; results are checked by samples only: {}\n", why.message);
}

}  // namespace sluice::bench
