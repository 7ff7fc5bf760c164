#include "npy.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "npy_header.hpp"

namespace sluice::cli {
namespace {

constexpr std::array<unsigned char, 6> kMagic = {0x93, 'N', 'U', 'M', 'P', 'Y'};
constexpr std::size_t kPrefixBytes1 = 10;  // magic, version, 2 bytes of header length
constexpr std::size_t kPrefixBytes2 = 12;  // magic, version, 4 bytes of header length
constexpr std::size_t kAlignmentBytes = 64;
constexpr std::uint32_t kLongestHeaderBytes = 1 << 20;
constexpr const char* kReadable = "bf16 ('<V2' as ml_dtypes writes it), float16, float32, float64, and FP8 as uint8";

Error bad(const std::string& path, const std::string& message) { return {ErrorCode::bad_format, path + ": " + message}; }

Result<NpyType> type_of(const NpyHeader& header, bool bf16_as_uint16) {
  const auto bad_type = [](const std::string& message) { return Error{ErrorCode::bad_format, message}; };
  const std::string& descr = header.descr;
  if (!header.descr_is_string)
    return bad_type(fmt::format("holds records of type {}; readable are {}: save one field by itself", descr, kReadable));
  if (descr == "<V2" || descr == "|V2" || descr == "V2" || descr == "bfloat16") return NpyType::bf16;
  if (descr == "|u1" || descr == "<V1" || descr == "|V1" || descr == "u1") return NpyType::bytes;
  if (descr == "<f2") return NpyType::fp16;
  if (descr == "<f4") return NpyType::fp32;
  if (descr == "<f8") return NpyType::fp64;
  if (descr == "<u2") {
    if (bf16_as_uint16) return NpyType::bf16;
    return bad_type("holds uint16 ('<u2'); if those are the bits of bf16 numbers, pass --bf16-as-uint16");
  }
  if (descr.starts_with(">"))
    return bad_type(fmt::format("holds big-endian numbers ('{}'); save array.astype(array.dtype.newbyteorder('<'))", descr));
  if (descr.starts_with("|O") || descr.starts_with("O"))
    return bad_type(fmt::format("holds Python objects ('{}'), not numbers; save array.astype(numpy.float32)", descr));
  return bad_type(fmt::format("holds type '{}'; readable are {}: save array.astype(numpy.float32)", descr, kReadable));
}

// Reads exactly `bytes`, or says how many there were.
Status read_bytes(std::ifstream& file, void* target, std::size_t bytes, const std::string& path, const char* what) {
  file.read(static_cast<char*>(target), static_cast<std::streamsize>(bytes));
  if (static_cast<std::size_t>(file.gcount()) == bytes) return Nothing{};
  return bad(path, fmt::format("truncated {}: {} bytes are missing from the {} it should have", what,
                               bytes - static_cast<std::size_t>(file.gcount()), bytes));
}

Status check_magic(const std::array<unsigned char, kPrefixBytes1>& prefix, std::size_t file_bytes, const std::string& path) {
  const std::size_t present = std::min(file_bytes, kMagic.size());
  if (present > 0 && std::memcmp(prefix.data(), kMagic.data(), present) == 0) return Nothing{};
  if (present == 0) return bad(path, "is empty, not a .npy file");
  if (prefix[0] == 'P' && prefix[1] == 'K') return bad(path, "is a zip archive, maybe .npz; extract the array and pass its .npy file");
  return bad(path, fmt::format("is not a .npy file: it begins with the bytes {:02x}, not {:02x}",
                               fmt::join(prefix.begin(), prefix.begin() + present, " "), fmt::join(kMagic, " ")));
}

Result<std::string> read_header_text(std::ifstream& file, std::size_t file_bytes, const std::string& path) {
  std::array<unsigned char, kPrefixBytes1> prefix{};
  file.read(reinterpret_cast<char*>(prefix.data()), static_cast<std::streamsize>(std::min(file_bytes, prefix.size())));
  if (Status s = check_magic(prefix, file_bytes, path); !s) return s.error();
  if (file_bytes < kPrefixBytes1) return bad(path, fmt::format("truncated header: the file has {} bytes", file_bytes));
  const int major = prefix[6], minor = prefix[7];
  if (major < 1 || major > 3 || minor != 0)
    return bad(path, fmt::format("is in .npy format {}.{}; readable are 1.0, 2.0 and 3.0", major, minor));
  std::uint32_t length = prefix[8] | static_cast<std::uint32_t>(prefix[9]) << 8;
  if (major > 1) {
    std::array<unsigned char, kPrefixBytes2 - kPrefixBytes1> high{};
    if (Status s = read_bytes(file, high.data(), high.size(), path, "header"); !s) return s.error();
    length |= static_cast<std::uint32_t>(high[0]) << 16 | static_cast<std::uint32_t>(high[1]) << 24;
  }
  if (length > kLongestHeaderBytes)
    return bad(path, fmt::format("says its header has {} bytes; more than {} are not read", length, kLongestHeaderBytes));
  std::string text(length, '\0');
  if (Status s = read_bytes(file, text.data(), text.size(), path, "header"); !s) return s.error();
  return text;
}

// Bytes of the array's data, or nothing if they cannot be counted in 63 bits.
std::optional<std::size_t> data_bytes(const std::vector<std::int64_t>& shape, int element_bytes) {
  std::int64_t bytes = element_bytes;
  for (const std::int64_t extent : shape)
    if (extent == 0) return 0;
  for (const std::int64_t extent : shape)
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return std::nullopt;
  return static_cast<std::size_t>(bytes);
}

const char* descr_of(DataType type) {
  switch (type) {
    case DataType::bf16:
      return "<V2";
    case DataType::fp16:
      return "<f2";
    case DataType::e4m3:
    case DataType::e5m2:
    case DataType::int4:
      return "|u1";
    case DataType::fp32:
      break;
  }
  return "<f4";
}

// A file whose header has been read.
struct OpenFile {
  std::ifstream file;
  NpyHeader header;
  std::size_t data_bytes = 0;  // that it holds behind the header
};

Result<OpenFile> open_npy(const std::string& path) {
  std::error_code problem;
  const std::filesystem::file_status status = std::filesystem::status(path, problem);
  if (!std::filesystem::exists(status)) return Error{ErrorCode::not_found, fmt::format("{}: there is no such file", path)};
  if (!std::filesystem::is_regular_file(status)) return Error{ErrorCode::io, fmt::format("{}: is not a regular file", path)};
  const std::size_t file_bytes = std::filesystem::file_size(path, problem);
  OpenFile open{.file = std::ifstream(path, std::ios::binary), .header = {}};
  if (problem || !open.file) return Error{ErrorCode::io, fmt::format("{}: cannot be opened: {}", path, std::strerror(errno))};

  const Result<std::string> text = read_header_text(open.file, file_bytes, path);
  if (!text) return text.error();
  Result<NpyHeader> header = parse_npy_header(*text);
  if (!header) return bad(path, "bad header: " + header.error().message);
  open.header = std::move(*header);
  open.data_bytes = file_bytes - static_cast<std::size_t>(open.file.tellg());
  return open;
}

Result<std::vector<std::byte>> read_data(OpenFile& open, int element_bytes, const char* type, const std::string& path) {
  const std::vector<std::int64_t>& shape = open.header.shape;
  const auto bytes = data_bytes(shape, element_bytes);
  if (!bytes) return Error{ErrorCode::too_large, fmt::format("{}: shape {} is more than 2^63 bytes", path, shape_text(shape))};
  if (*bytes != open.data_bytes)
    return bad(
        path, fmt::format("{}: shape {} of {} needs {} bytes of data, the file holds {}",
                          *bytes > open.data_bytes ? "truncated data" : "too much data", shape_text(shape), type, *bytes, open.data_bytes));
  std::vector<std::byte> data(*bytes);
  if (Status s = read_bytes(open.file, data.data(), *bytes, path, "data"); !s) return s.error();
  return data;
}

Status write_file(const std::string& path, const char* descr, const std::vector<std::int64_t>& shape, std::span<const std::byte> data) {
  std::string text = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': {}, }}", descr, shape_text(shape));
  const std::size_t unpadded = kPrefixBytes1 + text.size() + 1;
  text.append((kAlignmentBytes - unpadded % kAlignmentBytes) % kAlignmentBytes, ' ');
  text += '\n';
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file) return Error{ErrorCode::io, fmt::format("cannot write {}: {}", path, std::strerror(errno))};
  file.write(reinterpret_cast<const char*>(kMagic.data()), kMagic.size());
  const std::array<char, 4> version_and_length = {1, 0, static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  file.write(version_and_length.data(), version_and_length.size());
  file << text;
  file.write(reinterpret_cast<const char*>(data.data()), static_cast<std::streamsize>(data.size()));
  file.close();
  if (!file) return Error{ErrorCode::io, fmt::format("could not write all of {}; is the disk full?", path)};
  return Nothing{};
}

}  // namespace

const char* to_string(NpyType type) {
  switch (type) {
    case NpyType::bf16:
      return "bf16";
    case NpyType::fp16:
      return "fp16";
    case NpyType::fp32:
      return "fp32";
    case NpyType::bytes:
      return "bytes";
    case NpyType::fp64:
      break;
  }
  return "fp64";
}

int size_bytes(NpyType type) {
  switch (type) {
    case NpyType::bytes:
      return 1;
    case NpyType::bf16:
    case NpyType::fp16:
      return 2;
    case NpyType::fp32:
      return 4;
    case NpyType::fp64:
      break;
  }
  return 8;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return shape.size() == 1 ? fmt::format("({},)", shape[0]) : fmt::format("({})", fmt::join(shape, ", "));
}

Result<NpyArray> read_npy(const std::string& path, bool bf16_as_uint16) {
  Result<OpenFile> open = open_npy(path);
  if (!open) return open.error();
  const Result<NpyType> type = type_of(open->header, bf16_as_uint16);
  if (!type) return bad(path, type.error().message);
  Result<std::vector<std::byte>> data = read_data(*open, size_bytes(*type), to_string(*type), path);
  if (!data) return data.error();
  return NpyArray{
      .type = *type, .fortran_order = open->header.fortran_order, .shape = std::move(open->header.shape), .data = std::move(*data)};
}

Result<std::vector<std::int64_t>> read_npy_integers(const std::string& path) {
  Result<OpenFile> open = open_npy(path);
  if (!open) return open.error();
  const std::string& descr = open->header.descr;
  const bool wide = descr == "<i8";
  if (!open->header.descr_is_string || (!wide && descr != "<i4"))
    return bad(path, fmt::format("holds type {}; sizes must be int32 or int64: save array.astype(numpy.int32)",
                                 open->header.descr_is_string ? "'" + descr + "'" : descr));
  if (open->header.shape.size() != 1)
    return bad(path, fmt::format("has shape {}; sizes have one dimension: save array.reshape(-1)", shape_text(open->header.shape)));
  const Result<std::vector<std::byte>> data = read_data(*open, wide ? 8 : 4, wide ? "int64" : "int32", path);
  if (!data) return data.error();
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(open->header.shape[0]));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (wide) {
      std::memcpy(&numbers[i], data->data() + i * 8, 8);
      continue;
    }
    std::int32_t number = 0;
    std::memcpy(&number, data->data() + i * 4, 4);
    numbers[i] = number;
  }
  return numbers;
}

Status write_npy(const std::string& path, DataType type, const std::vector<std::int64_t>& shape, std::span<const std::byte> data) {
  return write_file(path, descr_of(type), shape, data);
}

Status write_npy_integers(const std::string& path, const std::vector<std::int32_t>& numbers) {
  return write_file(path, "<i4", {static_cast<std::int64_t>(numbers.size())}, std::as_bytes(std::span(numbers)));
}

Result<NpySamples> read_npy_samples(const std::string& path) {
  Result<OpenFile> open = open_npy(path);
  if (!open) return open.error();
  const std::string& descr = open->header.descr;
  NpySamples samples;
  if (descr == "|u1" || descr == "u1")
    samples.type = HistogramSample::uint8;
  else if (descr == "<f4")
    samples.type = HistogramSample::float32;
  else if (descr != "<i4")
    return bad(path, fmt::format("holds type {}; samples are int32, uint8 or float32: save array.astype(numpy.int32)",
                                 open->header.descr_is_string ? "'" + descr + "'" : descr));
  const int element_bytes = samples.type == HistogramSample::uint8 ? 1 : 4;
  Result<std::vector<std::byte>> data = read_data(*open, element_bytes, sluice::to_string(samples.type), path);
  if (!data) return data.error();
  samples.data = std::move(*data);
  samples.count = static_cast<std::int64_t>(samples.data.size()) / element_bytes;
  return samples;
}

Status write_npy_counts(const std::string& path, CountType type, const std::vector<std::byte>& data) {
  return write_file(path, type == CountType::int64 ? "<i8" : "<i4", {static_cast<std::int64_t>(data.size()) / size_bytes(type)}, data);
}

}  // namespace sluice::cli
