// What the programs that measure say beside their results.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "sluice/error.hpp"

namespace sluice::bench {

inline constexpr int kRight = 0, kWrong = 1, kCouldNotRun = 2;  // exit codes

void show_progress(std::size_t done, std::size_t all, const std::string& what);  // to stderr
void end_progress();

Status write_file(const std::string& path, const std::string& text);

// Runs a command's work, which returns an exit code. What it refuses and what the GPU throws is reported, and the code is kCouldNotRun;
// with `json` stdout holds one document whatever happens, in the form of the command line tool's errors.
int run_reported(std::string_view command, bool json, const std::function<Result<int>()>& work);

void say_cublaslt_is_missing(const Error& why);

}  // namespace sluice::bench
