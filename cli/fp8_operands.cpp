#include "fp8_operands.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include <fmt/core.h>

#include "choices.hpp"

namespace sluice::cli {
namespace {

constexpr std::int64_t kScaleBlock = 128;
constexpr std::int64_t kRowBytes = 16;

std::int64_t blocks(std::int64_t extent) { return (extent + kScaleBlock - 1) / kScaleBlock; }

// An operand as vectors of K elements: rows of A, columns of B.
struct Vectors {
  const Matrices& matrices;
  bool are_rows;
  std::int64_t count;
  std::int64_t depth;

  std::size_t index(std::int64_t batch, std::int64_t v, std::int64_t k) const {
    const std::int64_t row = are_rows ? v : k, column = are_rows ? k : v;
    const bool row_major = matrices.layout == Layout::row_major;
    const std::int64_t within = row_major ? row * matrices.columns + column : column * matrices.rows + row;
    return static_cast<std::size_t>(batch * matrices.rows * matrices.columns + within);
  }
  bool k_contiguous() const { return (matrices.layout == Layout::row_major) == are_rows; }
};

struct ScaleFile {
  NpyArray array;
  std::vector<std::int64_t> shape;  // of the array, a single number as one element
  Scaling scaling = Scaling::none;
  bool batched = false;
};

// What scaling the file's shape is that of, in a product of `batch` matrices.
Result<ScaleFile> match_scales(NpyArray array, const WantedScales& wanted, std::optional<Scaling> asked, OperandName name,
                               const Vectors& vectors, std::int64_t batch) {
  ScaleFile file{.array = std::move(array)};
  file.shape = file.array.shape;
  if (file.shape.empty()) file.shape = {1};
  std::string wants;
  for (const bool batched : {false, true})
    for (const Scaling scaling : {Scaling::per_tensor, Scaling::per_vector, Scaling::per_vector_128, Scaling::per_block_128}) {
      if (asked && scaling != *asked) continue;
      std::vector<std::int64_t> shape = scale_shape(scaling, vectors.count, vectors.depth);
      if (!batched) wants += fmt::format("{}{} for {}", wants.empty() ? "" : ", ", shape_text(shape), sluice::to_string(scaling));
      if (batched) shape.insert(shape.begin(), batch);
      if (shape != file.shape || (batched && batch <= 1)) continue;
      file.scaling = scaling;
      file.batched = batched;
      return file;
    }
  return Error{ErrorCode::invalid_argument,
               fmt::format("{}: has shape {}; scales of {} have {}{}", wanted.path, shape_text(file.array.shape),
                           name == OperandName::a ? "A" : "B", wants, batch > 1 ? ", maybe behind the batch" : "")};
}

Status read_scales(const WantedScales& wanted, std::optional<Scaling> asked, OperandName name, const Vectors& vectors, std::int64_t batch,
                   Fp8Operand& operand) {
  Result<NpyArray> array = read_npy(wanted.path, false);
  if (!array) return array.error();
  if (array->type == NpyType::bytes)
    return Error{ErrorCode::bad_format, fmt::format("{}: holds bytes; scales are numbers: save array.astype(numpy.float32)", wanted.path)};
  Result<ScaleFile> file = match_scales(std::move(*array), wanted, asked, name, vectors, batch);
  if (!file) return file.error();
  if (file->array.fortran_order && file->batched && file->shape.size() > 1)
    return Error{ErrorCode::bad_format,
                 fmt::format("{}: holds a batch of scales in Fortran order; save numpy.ascontiguousarray(array)", wanted.path)};
  operand.scaling = file->scaling;
  operand.scale_layout = file->array.fortran_order ? Layout::column_major : Layout::row_major;
  operand.batch_stride_scale = batch > 1 && !file->batched ? 0 : kPacked;
  const std::int64_t bytes = size_bytes(file->array.type);
  for (std::size_t at = 0; at < file->array.data.size(); at += static_cast<std::size_t>(bytes))
    operand.scales.push_back(static_cast<float>(load_element(file->array.data.data() + at, file->array.type)));
  operand.lines.push_back(fmt::format("scale_{} {}: {} {}, {}", static_cast<char>(name), wanted.path, shape_text(file->array.shape),
                                      to_string(file->array.type), sluice::to_string(file->scaling)));
  return Nothing{};
}

// Which of its scales, in row-major order, an element has.
std::size_t scale_index(Scaling scaling, const Vectors& vectors, std::int64_t batch, std::int64_t v, std::int64_t k) {
  std::int64_t each = 1;
  for (const std::int64_t extent : scale_shape(scaling, vectors.count, vectors.depth)) each *= extent;
  std::int64_t within = 0;
  if (scaling == Scaling::per_vector) within = v;
  if (scaling == Scaling::per_vector_128) within = v * blocks(vectors.depth) + k / kScaleBlock;
  if (scaling == Scaling::per_block_128) within = v / kScaleBlock * blocks(vectors.depth) + k / kScaleBlock;
  return static_cast<std::size_t>(batch * each + within);
}

double element(const Vectors& vectors, std::int64_t batch, std::int64_t v, std::int64_t k) {
  const Matrices& matrices = vectors.matrices;
  const std::size_t bytes = static_cast<std::size_t>(size_bytes(matrices.type));
  return load_element(matrices.data.data() + vectors.index(batch, v, k) * bytes, matrices.type);
}

template <class Visit>
void for_each_element(const Vectors& vectors, Visit&& visit) {
  for (std::int64_t batch = 0; batch < vectors.matrices.batch; ++batch)
    for (std::int64_t v = 0; v < vectors.count; ++v)
      for (std::int64_t k = 0; k < vectors.depth; ++k) visit(batch, v, k);
}

// The largest element that shares a scale becomes the largest number of the type.
std::vector<float> find_scales(const Vectors& vectors, Scaling scaling, DataType type) {
  std::size_t count = static_cast<std::size_t>(vectors.matrices.batch);
  for (const std::int64_t extent : scale_shape(scaling, vectors.count, vectors.depth)) count *= static_cast<std::size_t>(extent);
  std::vector<double> largest(count, 0.0);
  for_each_element(vectors, [&](std::int64_t batch, std::int64_t v, std::int64_t k) {
    const double magnitude = std::abs(element(vectors, batch, v, k));
    double& so_far = largest[scale_index(scaling, vectors, batch, v, k)];
    if (std::isfinite(magnitude)) so_far = std::max(so_far, magnitude);
  });
  std::vector<float> scales;
  for (const double magnitude : largest) {
    const double scale = std::max(magnitude / largest_fp8(type), static_cast<double>(std::numeric_limits<float>::min()));
    scales.push_back(magnitude == 0 ? 1.0f : static_cast<float>(std::min<double>(scale, std::numeric_limits<float>::max())));
  }
  return scales;
}

// Copies the elements to rows of `leading` bytes, rounded, and divided by the scales that were found from them.
std::int64_t copy_elements(const Vectors& vectors, DataType type, bool divide, Fp8Operand& operand) {
  const Matrices& matrices = vectors.matrices;
  std::int64_t too_large = 0;
  operand.data.assign(static_cast<std::size_t>(matrices.batch * vectors.count * operand.leading), std::byte{0});
  for_each_element(vectors, [&](std::int64_t batch, std::int64_t v, std::int64_t k) {
    std::byte* const to = operand.data.data() + (batch * vectors.count + v) * operand.leading + k;
    if (matrices.type == NpyType::bytes) {
      *to = matrices.data[vectors.index(batch, v, k)];
      return;
    }
    double value = element(vectors, batch, v, k);
    if (divide) {
      value /= operand.scales[scale_index(operand.scaling, vectors, batch, v, k)];
      // The scale was rounded: the largest element may be a little larger than the largest number, to which it is rounded in any case.
      if (std::isfinite(value)) value = std::clamp(value, -largest_fp8(type), largest_fp8(type));
    }
    if (store_element(to, type, value)) ++too_large;
  });
  return too_large;
}

std::string how_copied(const Vectors& vectors, DataType type, bool found_scales, const Fp8Operand& operand) {
  std::string how;
  if (!vectors.k_contiguous()) how += ", copied to another order";
  if (operand.leading > vectors.depth) how += fmt::format(", copied to rows of {} bytes", operand.leading);
  if (vectors.matrices.type == NpyType::bytes) return how + fmt::format(", read as {}", sluice::to_string(type));
  how += fmt::format(", converted to {}", sluice::to_string(type));
  return how + (found_scales ? fmt::format(" with scales found for each {}", sluice::to_string(operand.scaling)) : "");
}

}  // namespace

std::vector<std::int64_t> scale_shape(Scaling scaling, std::int64_t vectors, std::int64_t k) {
  switch (scaling) {
    case Scaling::none:
      break;
    case Scaling::per_tensor:
      return {1};
    case Scaling::per_vector:
      return {vectors};
    case Scaling::per_vector_128:
      return {vectors, blocks(k)};
    case Scaling::per_block_128:
      return {blocks(vectors), blocks(k)};
  }
  return {};
}

Result<Fp8Operand> to_fp8(const Matrices& matrices, OperandName name, DataType type, const WantedScales& wanted, std::int64_t batch) {
  const bool are_rows = name == OperandName::a;
  const Vectors vectors{matrices, are_rows, are_rows ? matrices.rows : matrices.columns, are_rows ? matrices.columns : matrices.rows};
  const std::string flag = fmt::format("--scaling-{}", static_cast<char>(name));
  std::optional<Scaling> asked;
  if (Status s = choose_into(asked, flag.c_str(), wanted.scaling, &parse_scaling, kScalings); !s) return s.error();
  const bool has_file = !wanted.path.empty(), scaled = asked.value_or(Scaling::none) != Scaling::none;
  if (has_file && asked == Scaling::none)
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{} none contradicts --scale-{}; leave one of them out", flag, static_cast<char>(name))};
  if (scaled && !has_file && matrices.type == NpyType::bytes)
    return Error{ErrorCode::invalid_argument,
                 fmt::format("{} {} needs the scales that belong to the bytes in the file; pass --scale-{} FILE", flag, wanted.scaling,
                             static_cast<char>(name))};

  Fp8Operand operand{.leading = std::max<std::int64_t>(1, (vectors.depth + kRowBytes - 1) / kRowBytes) * kRowBytes};
  if (has_file) {
    if (Status s = read_scales(wanted, asked, name, vectors, batch, operand); !s) return s.error();
  } else if (scaled) {
    operand.scaling = *asked;
    operand.scales = find_scales(vectors, *asked, type);
    operand.batch_stride_scale = batch > 1 && matrices.batch == 1 ? 0 : kPacked;
  }
  const std::int64_t too_large = copy_elements(vectors, type, scaled && !has_file, operand);
  if (too_large > 0)
    operand.warnings.push_back(fmt::format("{} too large for {} and became {}; pass {} tensor or finer, and scales are found for them",
                                           elements_are(too_large, are_rows ? "A" : "B"), sluice::to_string(type), largest_fp8(type),
                                           flag));
  operand.how = how_copied(vectors, type, scaled && !has_file, operand);
  return operand;
}

}  // namespace sluice::cli
