#include "safetensors.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <tuple>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "npy.hpp"

namespace sluice::cli {
namespace {

using Json = nlohmann::json;  // objects by name: a model has thousands of tensors

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kLongestHeaderBytes = 100'000'000;  // as the format's own reader has it

Error bad(const std::string& path, const std::string& message) { return {ErrorCode::bad_format, path + ": " + message}; }

// Of an element; nothing for a name that the format lacks.
std::optional<std::uint64_t> bits_of(const std::string& dtype) {
  struct Named {
    const char* name;
    std::uint64_t bits;
  };
  constexpr Named kTypes[] = {{"BOOL", 8}, {"U8", 8},   {"I8", 8},    {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"I16", 16},
                              {"U16", 16}, {"F16", 16}, {"BF16", 16}, {"I32", 32},    {"U32", 32},    {"F32", 32},    {"I64", 64},
                              {"U64", 64}, {"F64", 64}, {"C64", 64},  {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}};
  const auto* const found = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const Named& each) { return dtype == each.name; });
  return found == std::end(kTypes) ? std::nullopt : std::optional(found->bits);
}

// JSON that names nothing twice, or why it is none.
Result<Json> parse_header(const std::string& text) {
  std::vector<std::set<std::string>> keys;
  std::string twice;
  const auto notice = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) twice = parsed.get<std::string>();
    return true;
  };
  Json header = Json::parse(text, notice, false);
  if (header.is_discarded()) return Error{ErrorCode::bad_format, "is no JSON"};
  if (!header.is_object()) return Error{ErrorCode::bad_format, "is no JSON object"};
  if (!twice.empty()) return Error{ErrorCode::bad_format, fmt::format("has '{}' twice", twice)};
  return header;
}

// Bytes of so many elements, or nothing if they cannot be counted or do not fill their last byte.
std::optional<std::uint64_t> bytes_of(const std::vector<std::int64_t>& shape, std::uint64_t bits) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::uint64_t all = bits;
  for (const std::int64_t extent : shape)
    if (__builtin_mul_overflow(all, static_cast<std::uint64_t>(extent), &all)) return std::nullopt;
  return all % 8 == 0 ? std::optional(all / 8) : std::nullopt;
}

// A list of numbers of 0 or more that fit 63 bits.
std::optional<std::vector<std::int64_t>> numbers(const Json& list) {
  if (!list.is_array()) return std::nullopt;
  std::vector<std::int64_t> values;
  for (const Json& each : list) {
    if (!each.is_number_unsigned() || each.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
    values.push_back(each.get<std::int64_t>());
  }
  return values;
}

Result<SafeTensor> read_entry(const std::string& name, const Json& entry, std::uint64_t data_bytes) {
  const auto wrong = [&](const std::string& message) { return Error{ErrorCode::bad_format, fmt::format("tensor '{}' {}", name, message)}; };
  if (!entry.is_object()) return wrong("is no JSON object");
  for (const char* key : {"dtype", "shape", "data_offsets"})
    if (!entry.contains(key)) return wrong(fmt::format("has no '{}'", key));
  if (!entry["dtype"].is_string()) return wrong("has a 'dtype' that is no string");
  SafeTensor tensor{.name = name, .dtype = entry["dtype"].get<std::string>()};
  const std::optional<std::uint64_t> bits = bits_of(tensor.dtype);
  if (!bits) return wrong(fmt::format("is of type '{}', which the format does not have", tensor.dtype));
  const auto shape = numbers(entry["shape"]), offsets = numbers(entry["data_offsets"]);
  if (!shape) return wrong("has a 'shape' that is no list of numbers of 0 or more");
  if (!offsets || offsets->size() != 2) return wrong("has 'data_offsets' that are not two numbers of 0 or more");
  tensor.shape = *shape;
  tensor.begin = static_cast<std::uint64_t>((*offsets)[0]);
  tensor.end = static_cast<std::uint64_t>((*offsets)[1]);
  if (tensor.begin > tensor.end) return wrong(fmt::format("begins at byte {}, behind its end, {}", tensor.begin, tensor.end));
  if (tensor.end > data_bytes)
    return wrong(fmt::format("ends at byte {} of the data, of which the file has {}; it is truncated, or its header is wrong", tensor.end,
                             data_bytes));
  const std::optional<std::uint64_t> bytes = bytes_of(tensor.shape, *bits);
  if (!bytes) return wrong(fmt::format("has the shape {}, whose bytes cannot be counted", shape_text(tensor.shape)));
  if (*bytes != tensor.end - tensor.begin)
    return wrong(
        fmt::format("of {} {} needs {} bytes, and has {}", tensor.dtype, shape_text(tensor.shape), *bytes, tensor.end - tensor.begin));
  return tensor;
}

// All of the data belong to one tensor each.
Status check_coverage(const std::vector<SafeTensor>& tensors, std::uint64_t data_bytes) {
  const auto wrong = [](const std::string& message) { return Error{ErrorCode::bad_format, message}; };
  std::uint64_t covered = 0;
  for (const SafeTensor& tensor : tensors) {
    if (tensor.begin < covered)
      return wrong(fmt::format("tensor '{}' begins at byte {}, within the one before it", tensor.name, tensor.begin));
    if (tensor.begin > covered) return wrong(fmt::format("bytes {} to {} of the data belong to no tensor", covered, tensor.begin));
    covered = tensor.end;
  }
  if (covered != data_bytes) return wrong(fmt::format("bytes {} to {} of the data belong to no tensor", covered, data_bytes));
  return Nothing{};
}

Status read_metadata(const Json& entry, SafetensorsFile& file) {
  const Error wrong{ErrorCode::bad_format, "'__metadata__' must be an object of strings"};
  if (!entry.is_object()) return wrong;
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) return wrong;
    file.metadata.emplace_back(key, value.get<std::string>());
  }
  return Nothing{};
}

Status read_header(const Json& header, std::uint64_t data_bytes, SafetensorsFile& file) {
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      if (Status s = read_metadata(entry, file); !s) return s;
      continue;
    }
    Result<SafeTensor> tensor = read_entry(name, entry, data_bytes);
    if (!tensor) return tensor.error();
    file.tensors.push_back(std::move(*tensor));
  }
  std::sort(file.tensors.begin(), file.tensors.end(),
            [](const SafeTensor& a, const SafeTensor& b) { return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name); });
  return check_coverage(file.tensors, data_bytes);
}

bool read_bytes(std::ifstream& file, void* target, std::uint64_t bytes) {
  file.read(static_cast<char*>(target), static_cast<std::streamsize>(bytes));
  return static_cast<std::uint64_t>(file.gcount()) == bytes;
}

}  // namespace

const SafeTensor* SafetensorsFile::find(const std::string& name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const SafeTensor& each) { return each.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

Result<SafetensorsFile> open_safetensors(const std::string& path) {
  std::error_code problem;
  const std::filesystem::file_status status = std::filesystem::status(path, problem);
  if (!std::filesystem::exists(status)) return Error{ErrorCode::not_found, fmt::format("{}: there is no such file", path)};
  if (!std::filesystem::is_regular_file(status)) return Error{ErrorCode::io, fmt::format("{}: is not a regular file", path)};
  const std::uint64_t file_bytes = std::filesystem::file_size(path, problem);
  std::ifstream file(path, std::ios::binary);
  if (problem || !file) return Error{ErrorCode::io, fmt::format("{}: cannot be opened: {}", path, std::strerror(errno))};

  std::array<unsigned char, kLengthBytes> prefix{};
  if (file_bytes < kLengthBytes || !read_bytes(file, prefix.data(), kLengthBytes))
    return bad(path, fmt::format("has {} bytes; a .safetensors file begins with 8 that say how long its header is", file_bytes));
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) length |= static_cast<std::uint64_t>(prefix[i]) << (8 * i);
  if (length > kLongestHeaderBytes)
    return bad(path, fmt::format("says its header has {} bytes; more than {} are not read, is it a .safetensors file?", length,
                                 kLongestHeaderBytes));
  if (length > file_bytes - kLengthBytes)
    return bad(path, fmt::format("says its header has {} bytes, and has {} behind the first 8; it is truncated", length,
                                 file_bytes - kLengthBytes));
  std::string text(length, '\0');
  if (!read_bytes(file, text.data(), length)) return Error{ErrorCode::io, fmt::format("{}: cannot be read", path)};
  const Result<Json> header = parse_header(text);
  if (!header) return bad(path, "its header " + header.error().message);
  SafetensorsFile opened{.path = path, .data_begin = kLengthBytes + length};
  if (Status s = read_header(*header, file_bytes - opened.data_begin, opened); !s) return bad(path, s.error().message);
  return opened;
}

Result<std::vector<std::byte>> read_tensor(const SafetensorsFile& file, const SafeTensor& tensor) {
  std::ifstream stream(file.path, std::ios::binary);
  std::vector<std::byte> data(tensor.end - tensor.begin);
  stream.seekg(static_cast<std::streamoff>(file.data_begin + tensor.begin));
  if (!stream || !read_bytes(stream, data.data(), data.size()))
    return Error{ErrorCode::io, fmt::format("{}: tensor '{}' cannot be read; has the file changed?", file.path, tensor.name)};
  return data;
}

}  // namespace sluice::cli
