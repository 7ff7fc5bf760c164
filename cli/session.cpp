#include "session.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/core.h>

namespace sluice::cli {
namespace {

int exit_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::io:
    case ErrorCode::cuda:
    case ErrorCode::wrong_device:
    case ErrorCode::workspace_too_small:
    case ErrorCode::out_of_memory:
    case ErrorCode::internal:
    case ErrorCode::emulation:
      return kExitFailure;
    case ErrorCode::invalid_argument:
    case ErrorCode::misaligned:
    case ErrorCode::unsupported:
    case ErrorCode::too_large:
    case ErrorCode::not_found:
    case ErrorCode::bad_format:
      break;
  }
  return kExitUsage;
}

}  // namespace

CLI::Validator above_zero() {
  return CLI::Validator([](const std::string& text) { return std::strtod(text.c_str(), nullptr) > 0 ? "" : text + " must be above 0"; },
                        "ABOVE ZERO");
}

// File names may hold bytes that are not UTF-8: they are replaced rather than refused.
void print_json(const Json& answer) { fmt::print("{}\n", answer.dump(2, ' ', false, Json::error_handler_t::replace)); }

int report(const Error& error, bool json) {
  const int code = exit_code(error.code);
  fmt::print(stderr, "sluice: {}\n", error.message);
  if (json) print_json({{"error", {{"code", to_string(error.code)}, {"message", error.message}, {"exit_code", code}}}});
  return code;
}

void print_answer(const Session& session, const Json& json, const std::vector<std::string>& lines) {
  if (session.json) return print_json(json);
  for (const std::string& line : lines) fmt::print("{}\n", line);
}

Json parse_json(const std::string& text) { return Json::parse(text, nullptr, false); }

Result<std::string> read_text_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{ErrorCode::not_found, fmt::format("cannot open {}: {}", path, std::strerror(errno))};
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad() || text.fail())
    return Error{ErrorCode::io, fmt::format("cannot read {}; is it a regular file that holds something?", path)};
  return text.str();
}

Status write_text_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file) return Error{ErrorCode::io, fmt::format("cannot write {}: {}", path, std::strerror(errno))};
  file << text;
  file.close();
  if (!file) return Error{ErrorCode::io, fmt::format("could not write all of {}; is the disk full?", path)};
  return Nothing{};
}

Status check_folder_of(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  std::error_code ignored;
  if (parent.empty() || std::filesystem::is_directory(parent, ignored)) return Nothing{};
  return Error{ErrorCode::not_found, fmt::format("cannot write {}: {} is not a folder", path, parent.string())};
}

}  // namespace sluice::cli
