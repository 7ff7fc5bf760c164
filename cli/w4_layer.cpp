#include "w4_layer.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "npy.hpp"
#include "operands.hpp"
#include "sluice/verify.hpp"

namespace sluice::cli {
namespace {

constexpr std::int64_t kCodesPerWord = 8;
using Shape = std::vector<std::int64_t>;

Error wrong(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }
Error bad(std::string message) { return {ErrorCode::bad_format, std::move(message)}; }

// A tensor and the file that it lies in.
struct Found {
  const SafetensorsFile* file = nullptr;
  const SafeTensor* tensor = nullptr;

  explicit operator bool() const { return tensor != nullptr; }
  const Shape& shape() const { return tensor->shape; }
  std::string text() const { return fmt::format("{} {} {}", tensor->name, tensor->dtype, shape_text(tensor->shape)); }
};

class Tensors {
 public:
  Tensors(const std::vector<SafetensorsFile>& files, const std::string& layer) : files_(files), prefix_(layer.empty() ? "" : layer + ".") {}

  Found find(const char* name) const {
    for (const SafetensorsFile& file : files_)
      if (const SafeTensor* tensor = file.find(prefix_ + name)) return {&file, tensor};
    return {};
  }
  // One that must be there, of two dimensions and one of these types.
  Result<Found> matrix(const char* name, const std::set<std::string>& types) const {
    const Found found = find(name);
    if (!found) return bad(fmt::format("there is no tensor {}{}; the layer has others", prefix_, name));
    if (!types.contains(found.tensor->dtype)) return bad(fmt::format("{}: must be of type {}", found.text(), fmt::join(types, " or ")));
    if (found.shape().size() != 2) return bad(fmt::format("{}: must have two dimensions", found.text()));
    return found;
  }
  static Status read(const Found& found, std::vector<std::byte>& to, W4Layer& layer) {
    Result<std::vector<std::byte>> data = read_tensor(*found.file, *found.tensor);
    if (!data) return data.error();
    to = std::move(*data);
    layer.lines.push_back(fmt::format("read  {}", found.text()));
    return Nothing{};
  }

 private:
  const std::vector<SafetensorsFile>& files_;
  std::string prefix_;
};

const std::set<std::string> kScaleTypes = {"F16", "BF16", "F32"};

DataType scale_type(const std::string& dtype) {
  if (dtype == "F16") return DataType::fp16;
  return dtype == "BF16" ? DataType::bf16 : DataType::fp32;
}

std::vector<std::int32_t> integers(const std::vector<std::byte>& data) {
  std::vector<std::int32_t> values(data.size() / sizeof(std::int32_t));
  std::memcpy(values.data(), data.data(), values.size() * sizeof(std::int32_t));
  return values;
}

std::int64_t groups_of(std::int64_t k, int group_size) { return w4_groups(k, {.group_size = group_size}); }

Result<int> group_size_of(std::int64_t k, std::int64_t groups, const std::optional<int>& wanted) {
  for (const int size : {0, 128, 64, 32})
    if ((!wanted || *wanted == size) && groups_of(k, size) == groups) return size;
  if (wanted)
    return wrong(fmt::format("--group-size {}: k = {} has {} such groups, and the scales are for {}", *wanted, k,
                             *wanted >= 0 ? groups_of(k, *wanted) : 0, groups));
  return Error{ErrorCode::unsupported,
               fmt::format("the scales are for {} groups of k = {}; groups of 32, 64 or 128 would be {}, {} or {}, whole columns 1", groups,
                           k, groups_of(k, 32), groups_of(k, 64), groups_of(k, 128))};
}

// What the layer's arrays come to, whichever they came from.
Status complete(W4Layer& layer, std::int64_t n, std::int64_t k, std::int64_t groups, const W4LayerFlags& flags) {
  PackW4Problem& p = layer.problem;
  if (n == 0 || k == 0) return bad(fmt::format("the layer has n = {} and k = {}; there is nothing to pack", n, k));
  const Result<int> group_size = group_size_of(k, groups, flags.group_size);
  if (!group_size) return group_size.error();
  p.n = n;
  p.k = k;
  p.format = {.group_size = *group_size, .zero_points = !layer.zeros.empty()};
  p.type = flags.type.value_or(p.type_scales == DataType::fp32 ? DataType::bf16 : p.type_scales);
  const Result<PackW4Problem> valid = validate(p);
  if (!valid) return valid.error();
  if (p.type_scales == p.type) return Nothing{};
  layer.lines.push_back(fmt::format("note  scales are {}, rounded to {}", sluice::to_string(p.type_scales), sluice::to_string(p.type)));
  if (p.type != DataType::fp16) return Nothing{};
  const NpyType from = p.type_scales == DataType::bf16 ? NpyType::bf16 : NpyType::fp32;
  std::int64_t too_large = 0;
  convert(layer.scales, from, p.type, too_large);
  if (too_large == 0) return Nothing{};
  return wrong(fmt::format("{} too large for fp16; pass --type bf16", elements_are(too_large, "the scales")));
}

// Zero points that are all 8 are what a format without them means.
void drop_middle_zeros(W4Layer& layer, std::byte middle, std::byte next) {
  if (layer.zeros.empty()) return;
  const auto all_are = [&](std::byte value) {
    return std::all_of(layer.zeros.begin(), layer.zeros.end(), [&](std::byte each) { return each == value; });
  };
  if (all_are(middle)) {
    layer.zeros.clear();
    layer.lines.emplace_back("note  all zero points are 8: packed without them");
  } else if (all_are(next)) {
    layer.lines.emplace_back("note  all zero points are 9; if they should be 8, the checkpoint is in the second format: pass --gptq-v2");
  }
}

// g_idx: nothing where each row is in the group that its place says.
Status order_rows(const Tensors& tensors, const char* name, W4Layer& layer) {
  const Found found = tensors.find(name);
  if (!found) return Nothing{};
  const PackW4Problem& p = layer.problem;
  if (found.tensor->dtype != "I32" || found.shape() != Shape{p.k})
    return bad(fmt::format("{}: must be I32 ({},), the group of each row of K", found.text(), p.k));
  std::vector<std::byte> data;
  if (Status s = Tensors::read(found, data, layer); !s) return s;
  const std::vector<std::int32_t> group_of = integers(data);
  if (std::all_of(group_of.begin(), group_of.end(), [](std::int32_t group) { return group == -1; }))
    return Nothing{};  // compressed-tensors: none
  std::vector<std::int32_t> order(group_of.size());
  if (Status s = order_of_groups(p.k, p.format.group_size, group_of.data(), order.data()); !s)
    return Error{s.error().code, fmt::format("{}: {}", found.tensor->name, s.error().message)};
  if (!std::is_sorted(order.begin(), order.end())) layer.order = std::move(order);
  return Nothing{};
}

Result<W4Layer> read_gptq_or_awq(const Tensors& tensors, const W4LayerFlags& flags) {
  const Result<Found> codes = tensors.matrix("qweight", {"I32"}), scales = tensors.matrix("scales", kScaleTypes),
                      zeros = tensors.matrix("qzeros", {"I32"});
  for (const Result<Found>* each : {&codes, &scales, &zeros})
    if (!*each) return each->error();
  const std::int64_t groups = scales->shape()[0], n = scales->shape()[1];
  const bool gptq = codes->shape()[1] == n, awq = codes->shape()[1] * kCodesPerWord == n;
  if (!gptq && !awq)
    return bad(
        fmt::format("{} and {} do not belong together: of GPTQ they are (k / 8, n) and (groups, n), of AWQ (k, n / 8) and (groups, n); "
                    "other bits than 4, and AWQ's GEMV and Marlin versions, are not read",
                    codes->text(), scales->text()));
  if (zeros->shape() != Shape{groups, n / kCodesPerWord} || n % kCodesPerWord != 0)
    return bad(fmt::format("{}: must be ({}, {}) with {}; are these 4 bits?", zeros->text(), groups, n / kCodesPerWord, scales->text()));
  if (awq && flags.gptq_v2) return wrong("--gptq-v2 is about GPTQ, and this layer is AWQ's; leave it out");
  W4Layer layer;
  layer.problem = {.source = gptq ? W4Source::gptq : W4Source::awq, .type_scales = scale_type(scales->tensor->dtype)};
  layer.problem.zeros_less_one = gptq && !flags.gptq_v2;
  for (const auto& [found, to] : {std::pair{*codes, &layer.codes}, {*scales, &layer.scales}, {*zeros, &layer.zeros}})
    if (Status s = Tensors::read(found, *to, layer); !s) return s.error();
  const bool less_one = layer.problem.zeros_less_one;
  drop_middle_zeros(layer, std::byte{static_cast<unsigned char>(less_one ? 0x77 : 0x88)},
                    std::byte{static_cast<unsigned char>(less_one ? 0x88 : 0x99)});
  const std::int64_t k = gptq ? codes->shape()[0] * kCodesPerWord : codes->shape()[0];
  if (Status s = complete(layer, n, k, groups, flags); !s) return s.error();
  if (Status s = order_rows(tensors, "g_idx", layer); !s) return s.error();
  return layer;
}

// Zero points of compressed-tensors, 8 less than ours: packed like codes, eight columns in a word, or signed bytes.
Status read_compressed_zeros(const Tensors& tensors, std::int64_t n, std::int64_t groups, W4Layer& layer) {
  const Found found = tensors.find("weight_zero_point");
  if (!found) return Nothing{};
  const bool words = found.tensor->dtype == "I32" && found.shape() == Shape{(n + kCodesPerWord - 1) / kCodesPerWord, groups};
  const bool bytes = found.tensor->dtype == "I8" && found.shape() == Shape{n, groups};
  if (!words && !bytes)
    return bad(
        fmt::format("{}: must be I32 ({}, {}), or I8 ({}, {})", found.text(), (n + kCodesPerWord - 1) / kCodesPerWord, groups, n, groups));
  std::vector<std::byte> data;
  if (Status s = Tensors::read(found, data, layer); !s) return s;
  layer.zeros.resize(static_cast<std::size_t>(n * groups));
  for (std::int64_t column = 0; column < n; ++column)
    for (std::int64_t group = 0; group < groups; ++group) {
      const auto at = static_cast<std::size_t>(column * groups + group);
      int zero = 0;
      if (bytes) {
        zero = static_cast<signed char>(data[at]) + 8;
        if (zero < 0 || zero > 15) return bad(fmt::format("{}: holds {}, which no 4 bits are", found.text(), zero - 8));
      } else {
        const auto byte = static_cast<std::size_t>((column / kCodesPerWord * groups + group) * 4 + column % kCodesPerWord / 2);
        zero = std::to_integer<int>(data[byte]) >> (column % 2 * 4) & 15;
      }
      layer.zeros[at] = static_cast<std::byte>(zero);
    }
  return Nothing{};
}

// [n, k], which the words of k do not tell from other bits.
Status check_compressed_shape(const Tensors& tensors, const Found& codes) {
  const Found found = tensors.find("weight_shape");
  if (!found) return Nothing{};
  if (found.shape() != Shape{2} || (found.tensor->dtype != "I64" && found.tensor->dtype != "I32"))
    return bad(fmt::format("{}: must be two numbers, I64 or I32", found.text()));
  const Result<std::vector<std::byte>> data = read_tensor(*found.file, *found.tensor);
  if (!data) return data.error();
  std::int64_t shape[2] = {0, 0};
  if (found.tensor->dtype == "I64") {
    std::memcpy(shape, data->data(), sizeof shape);
  } else {
    const std::vector<std::int32_t> narrow = integers(*data);
    std::copy(narrow.begin(), narrow.end(), shape);
  }
  if (shape[0] == codes.shape()[0] && shape[1] == codes.shape()[1] * kCodesPerWord) return Nothing{};
  return bad(fmt::format("{} are not 4 bits of each of {} x {} weights (weight_shape)", codes.text(), shape[0], shape[1]));
}

Result<W4Layer> read_compressed_tensors(const Tensors& tensors, const W4LayerFlags& flags) {
  const Result<Found> codes = tensors.matrix("weight_packed", {"I32"}), scales = tensors.matrix("weight_scale", kScaleTypes);
  for (const Result<Found>* each : {&codes, &scales})
    if (!*each) return each->error();
  if (flags.gptq_v2) return wrong("--gptq-v2 is about GPTQ, and this layer is of compressed-tensors; leave it out");
  const std::int64_t n = codes->shape()[0], k = codes->shape()[1] * kCodesPerWord, groups = scales->shape()[1];
  if (scales->shape()[0] != n)
    return bad(fmt::format("{} and {} do not belong together: their rows are columns of B", codes->text(), scales->text()));
  if (Status s = check_compressed_shape(tensors, *codes); !s) return s.error();
  W4Layer layer;
  layer.problem = {.source = W4Source::plain, .type_scales = scale_type(scales->tensor->dtype)};
  for (const auto& [found, to] : {std::pair{*codes, &layer.codes}, {*scales, &layer.scales}})
    if (Status s = Tensors::read(found, *to, layer); !s) return s.error();
  if (Status s = read_compressed_zeros(tensors, n, groups, layer); !s) return s.error();
  drop_middle_zeros(layer, std::byte{8}, std::byte{8});
  if (Status s = complete(layer, n, k, groups, flags); !s) return s.error();
  if (Status s = order_rows(tensors, "weight_g_idx", layer); !s) return s.error();
  return layer;
}

Result<NpyArray> read_table(const std::string& path, bool bf16_as_uint16, const char* what) {
  Result<NpyArray> array = read_npy(path, bf16_as_uint16);
  if (!array) return array;
  if (array->shape.size() != 2) return wrong(fmt::format("{}: has shape {}; {} have two dimensions", path, shape_text(array->shape), what));
  if (array->fortran_order) return wrong(fmt::format("{}: lies in Fortran order; save numpy.ascontiguousarray(array)", path));
  return array;
}

}  // namespace

std::vector<std::string> w4_layers(const std::vector<SafetensorsFile>& files) {
  std::set<std::string> layers;
  for (const SafetensorsFile& file : files)
    for (const SafeTensor& tensor : file.tensors)
      for (const std::string name : {"qweight", "weight_packed"}) {
        if (tensor.name == name) layers.insert("");
        if (tensor.name.ends_with("." + name)) layers.insert(tensor.name.substr(0, tensor.name.size() - name.size() - 1));
      }
  return {layers.begin(), layers.end()};
}

Result<W4Layer> read_w4_layer(const std::vector<SafetensorsFile>& files, const W4LayerFlags& flags) {
  std::string layer = flags.layer;
  if (layer.empty()) {
    const std::vector<std::string> layers = w4_layers(files);
    if (layers.empty())
      return bad(
          "no layer of 4 bits is there: no tensor is called qweight (GPTQ, AWQ) or weight_packed (compressed-tensors); see --inspect");
    if (layers.size() > 1)
      return wrong(fmt::format("there are {} layers of 4 bits; choose one with --layer, such as {} (--inspect lists them)", layers.size(),
                               layers[0]));
    layer = layers[0];
  }
  const Tensors tensors(files, layer);
  if (tensors.find("weight_packed")) return read_compressed_tensors(tensors, flags);
  if (tensors.find("qweight")) return read_gptq_or_awq(tensors, flags);
  return Error{ErrorCode::not_found, fmt::format("there is no layer '{}' of 4 bits: neither {}.qweight nor {}.weight_packed; see --inspect",
                                                 layer, layer, layer)};
}

Result<W4Layer> read_plain_w4(const std::string& codes_path, const std::string& scales_path, const std::string& zeros_path,
                              bool bf16_as_uint16, const W4LayerFlags& flags) {
  Result<NpyArray> codes = read_table(codes_path, false, "codes"), scales = read_table(scales_path, bf16_as_uint16, "scales");
  for (const Result<NpyArray>* each : {&codes, &scales})
    if (!*each) return each->error();
  if (codes->type != NpyType::bytes)
    return wrong(fmt::format("{}: holds {}; codes are uint8 [n, k/2], two in a byte: q[:, ::2] | q[:, 1::2] << 4", codes_path,
                             to_string(codes->type)));
  if (scales->type == NpyType::bytes || scales->type == NpyType::fp64)
    return wrong(fmt::format("{}: holds {}; scales are bf16, float16 or float32", scales_path, to_string(scales->type)));
  const std::int64_t n = codes->shape[0], k = codes->shape[1] * 2, groups = scales->shape[1];
  if (scales->shape[0] != n)
    return wrong(fmt::format("{}: has shape {}; for {} columns of B it must have as many rows", scales_path, shape_text(scales->shape), n));
  W4Layer layer;
  layer.problem.type_scales = scales->type == NpyType::bf16   ? DataType::bf16
                              : scales->type == NpyType::fp16 ? DataType::fp16
                                                              : DataType::fp32;
  layer.codes = std::move(codes->data);
  layer.scales = std::move(scales->data);
  layer.lines.push_back(fmt::format("read  {}, codes {}", codes_path, shape_text(codes->shape)));
  layer.lines.push_back(fmt::format("read  {}, scales {} {}", scales_path, to_string(scales->type), shape_text(scales->shape)));
  if (!zeros_path.empty()) {
    Result<NpyArray> zeros = read_table(zeros_path, false, "zero points");
    if (!zeros) return zeros.error();
    if (zeros->type != NpyType::bytes || zeros->shape != scales->shape)
      return wrong(fmt::format("{}: holds {} {}; zero points are uint8 {}, one for each scale", zeros_path, to_string(zeros->type),
                               shape_text(zeros->shape), shape_text(scales->shape)));
    layer.zeros = std::move(zeros->data);
    layer.lines.push_back(fmt::format("read  {}, zero points {}", zeros_path, shape_text(zeros->shape)));
    drop_middle_zeros(layer, std::byte{8}, std::byte{8});
  }
  if (Status s = complete(layer, n, k, groups, flags); !s) return s.error();
  return layer;
}

}  // namespace sluice::cli
