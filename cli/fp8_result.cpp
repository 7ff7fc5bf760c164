#include "fp8_result.hpp"

#include <algorithm>
#include <span>

#include <fmt/core.h>

#include "choices.hpp"

namespace sluice::cli {
namespace {

Error wrong(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }

std::int64_t blocks(std::int64_t columns) { return (columns + 127) / 128; }

Result<std::vector<float>> read_scales(const std::string& path, const std::vector<std::vector<std::int64_t>>& shapes) {
  const Result<NpyArray> array = read_npy(path, false);
  if (!array) return array.error();
  std::string wanted;
  for (const std::vector<std::int64_t>& shape : shapes) wanted += (wanted.empty() ? "" : " or ") + shape_text(shape);
  if (std::find(shapes.begin(), shapes.end(), array->shape) == shapes.end() || array->fortran_order)
    return wrong(fmt::format("{}: has shape {}; the scales of D have {}, in C order", path, shape_text(array->shape), wanted));
  if (array->type == NpyType::bytes)
    return Error{ErrorCode::bad_format, fmt::format("{}: holds bytes; scales are numbers: save array.astype(numpy.float32)", path)};
  std::vector<float> scales;
  const auto bytes = static_cast<std::size_t>(size_bytes(array->type));
  for (std::size_t at = 0; at < array->data.size(); at += bytes)
    scales.push_back(static_cast<float>(load_element(array->data.data() + at, array->type)));
  return scales;
}

}  // namespace

Result<std::vector<float>> read_result_scales(const WantedScales& wanted, bool found, GemmProblem& p) {
  if (Status s = choose_into(p.scaling_d, "--scaling-d", wanted.scaling, &parse_scaling, kResultScalings); !s) return s.error();
  if (!is_fp8(p.type_d) && (!wanted.path.empty() || p.scaling_d != Scaling::none))
    return wrong(
        fmt::format("--{} is for a D in FP8 alone; pass --out-type e4m3, or leave it out", wanted.path.empty() ? "scaling-d" : "scale-d"));
  if (p.scaling_d == Scaling::none && !wanted.path.empty())
    return wrong("--scale-d needs to know whether the scale is given or found; pass --scaling-d tensor or --scaling-d 1x128");
  if (p.scaling_d == Scaling::per_tensor) {
    if (wanted.path.empty()) return wrong("--scaling-d tensor needs the scale of D; pass --scale-d FILE");
    const std::int64_t matrices = p.grouping == Grouping::ragged ? 1 : p.batch;
    std::vector<std::vector<std::int64_t>> shapes = {{}, {1}};
    if (matrices > 1) shapes.push_back({matrices});
    Result<std::vector<float>> scales = read_scales(wanted.path, shapes);
    if (scales && scales->size() == 1) p.batch_stride_scale_d = 0;
    return scales;
  }
  if (p.scaling_d != Scaling::per_vector_128 || !found) return std::vector<float>{};
  if (wanted.path.empty()) return wrong("--check-file with --scaling-d 1x128 needs the scales that were found; pass --scale-d FILE");
  std::vector<std::vector<std::int64_t>> shapes = {{p.m, blocks(p.n)}};
  if (p.grouping != Grouping::ragged && p.batch > 1) shapes = {{p.batch, p.m, blocks(p.n)}};
  return read_scales(wanted.path, shapes);
}

Status write_result_scales(const std::string& path, const GemmProblem& p, const std::vector<std::int64_t>& shape_d,
                           const std::vector<float>& scales) {
  std::vector<std::int64_t> shape = shape_d;
  shape.back() = blocks(p.n);
  return write_npy(path, DataType::fp32, shape, std::as_bytes(std::span(scales)));
}

}  // namespace sluice::cli
