#include "gemm_inputs.hpp"

#include <optional>

#include <fmt/core.h>

#include "choices.hpp"
#include "npy.hpp"
#include "operands.hpp"

namespace sluice::cli {
namespace {

Error mismatch(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }

Result<Matrices> read_matrices(const std::string& path, bool file_holds_transpose, bool bf16_as_uint16) {
  Result<NpyArray> array = read_npy(path, bf16_as_uint16);
  if (!array) return array.error();
  return to_matrices(std::move(*array), path, file_holds_transpose);
}

std::string extents(const Matrices& x) {
  return x.batched ? fmt::format("{} matrices of {} x {}", x.batch, x.rows, x.columns) : fmt::format("{} x {}", x.rows, x.columns);
}

std::string line_about(const char* what, const std::string& path, const Matrices& x, DataType type) {
  std::string line = fmt::format("{:<4} {}: {} {}, {}", what, path, extents(x), to_string(x.type), sluice::to_string(x.layout));
  if (x.rearranged) line += ", copied to another order";
  if (!same_type(x.type, type)) line += fmt::format(", converted to {}", sluice::to_string(type));
  return line;
}

std::vector<std::byte> convert_and_warn(std::vector<std::byte> data, NpyType from, DataType to, const char* what, GemmInputs& inputs) {
  std::int64_t became_infinite = 0;
  std::vector<std::byte> converted = convert(std::move(data), from, to, became_infinite);
  if (became_infinite > 0)
    inputs.warnings.push_back(fmt::format(
        "{} too large for {} and became infinite; scale them, or pass another type",
        became_infinite == 1 ? fmt::format("1 element of {} is", what) : fmt::format("{} elements of {} are", became_infinite, what),
        sluice::to_string(to)));
  return converted;
}

std::optional<DataType> multipliable(NpyType type) {
  if (type == NpyType::bf16) return DataType::bf16;
  if (type == NpyType::fp16) return DataType::fp16;
  return std::nullopt;
}

// A 16-bit input decides; wider ones are converted to it. Two that differ need the user's word.
Result<DataType> type_of_inputs(const GemmFiles& files, NpyType type_a, NpyType type_b) {
  if (!files.type.empty()) return choose("--type", files.type, &parse_input_type, kInputTypes);
  const std::optional<DataType> a = multipliable(type_a), b = multipliable(type_b);
  if (a && b && *a != *b)
    return mismatch(fmt::format("{} holds {} and {} holds {}; pass --type {} or --type {} to convert one of them", files.a,
                                to_string(type_a), files.b, to_string(type_b), sluice::to_string(*a), sluice::to_string(*b)));
  return a ? *a : b.value_or(DataType::bf16);
}

// How many matrices the whole product has, where one matrix may stand for all.
Result<std::int64_t> common_batch(const GemmFiles& files, const Matrices& a, const Matrices& b) {
  if (a.batch == b.batch || b.batch == 1) return a.batch;
  if (a.batch == 1) return b.batch;
  return mismatch(fmt::format("{} holds {} matrices and {} holds {}; batches must be equal, or one of them a single matrix", files.a,
                              a.batch, files.b, b.batch));
}

Status check_inner(const GemmFiles& files, const Matrices& a, const Matrices& b) {
  if (a.columns == b.rows) return Nothing{};
  std::string hint;
  if (a.columns == b.columns)
    hint =
        files.b_is_transposed ? "; is --transpose-b wrong here?" : fmt::format("; if {} holds B transposed, pass --transpose-b", files.b);
  else if (a.rows == b.rows)
    hint =
        files.a_is_transposed ? "; is --transpose-a wrong here?" : fmt::format("; if {} holds A transposed, pass --transpose-a", files.a);
  return mismatch(fmt::format("A ({}) is {} and B ({}) is {}: A's {} columns do not meet B's {} rows{}", files.a, extents(a), files.b,
                              extents(b), a.columns, b.rows, hint));
}

constexpr std::int64_t batch_stride(const Matrices& x, std::int64_t batch) { return batch > 1 && x.batch == 1 ? 0 : kPacked; }

Status read_c(const GemmFiles& files, GemmInputs& inputs) {
  GemmProblem& p = inputs.problem;
  if (files.c.empty()) {
    if (p.epilogue.beta == 0.0f) return Nothing{};
    return mismatch(fmt::format("--beta {} needs C; pass -C C.npy", p.epilogue.beta));
  }
  Result<Matrices> c = read_matrices(files.c, false, files.bf16_as_uint16);
  if (!c) return c.error();
  if (c->rows != p.m || c->columns != p.n || (c->batch != 1 && c->batch != p.batch))
    return mismatch(fmt::format("C ({}) is {}; D has {} of {} x {}", files.c, extents(*c), p.batch, p.m, p.n));
  make_row_major(*c);
  p.batch_stride_c = batch_stride(*c, p.batch);
  inputs.lines.push_back(line_about("C", files.c, *c, p.type_d));
  inputs.c = convert_and_warn(std::move(c->data), c->type, p.type_d, "C", inputs);
  return Nothing{};
}

Status read_bias(const GemmFiles& files, GemmInputs& inputs) {
  GemmProblem& p = inputs.problem;
  if (files.bias.empty()) return Nothing{};
  const Result<Bias> kind = choose("--bias-kind", files.bias_kind, &parse_bias, "per_row, per_column");
  if (!kind) return kind.error();
  if (*kind == Bias::none) return mismatch("--bias-kind none contradicts --bias; leave one of them out");
  Result<NpyArray> array = read_npy(files.bias, files.bf16_as_uint16);
  if (!array) return array.error();
  const bool per_row = *kind == Bias::per_row;
  const std::int64_t wanted = per_row ? p.m : p.n, other = per_row ? p.n : p.m;
  if (array->shape.size() != 1)
    return mismatch(
        fmt::format("{}: has shape {}; a bias has one dimension: save array.reshape(-1)", files.bias, shape_text(array->shape)));
  if (array->shape[0] != wanted)
    return mismatch(fmt::format("{}: has {} elements, a {} bias needs {}{}", files.bias, array->shape[0], files.bias_kind, wanted,
                                array->shape[0] == other ? fmt::format("; pass --bias-kind {}", per_row ? "per_column" : "per_row") : ""));
  p.epilogue.bias = *kind;
  inputs.lines.push_back(
      fmt::format("{:<4} {}: {} {} {}{}", "bias", files.bias, wanted, to_string(array->type), files.bias_kind,
                  same_type(array->type, p.type_d) ? "" : fmt::format(", converted to {}", sluice::to_string(p.type_d))));
  inputs.bias = convert_and_warn(std::move(array->data), array->type, p.type_d, "the bias", inputs);
  return Nothing{};
}

}  // namespace

Result<GemmInputs> read_gemm_inputs(const GemmFiles& files) {
  Result<Matrices> a = read_matrices(files.a, files.a_is_transposed, files.bf16_as_uint16);
  if (!a) return a.error();
  Result<Matrices> b = read_matrices(files.b, files.b_is_transposed, files.bf16_as_uint16);
  if (!b) return b.error();
  if (Status s = check_inner(files, *a, *b); !s) return s.error();
  const Result<std::int64_t> batch = common_batch(files, *a, *b);
  if (!batch) return batch.error();
  const Result<DataType> type = type_of_inputs(files, a->type, b->type);
  if (!type) return type.error();

  GemmInputs inputs;
  GemmProblem& p = inputs.problem;
  p = {.m = a->rows,
       .n = b->columns,
       .k = a->columns,
       .batch = *batch,
       .type_a = *type,
       .type_b = *type,
       .type_d = *type,
       .layout_a = a->layout,
       .layout_b = b->layout,
       .batch_stride_a = batch_stride(*a, *batch),
       .batch_stride_b = batch_stride(*b, *batch)};
  if (Status s = choose_into(p.type_d, "--out-type", files.out_type, &parse_data_type, kOutputTypes); !s) return s.error();
  EpilogueFlags epilogue_flags = files.epilogue;
  if (!files.c.empty() && !epilogue_flags.beta) epilogue_flags.beta = 1.0f;
  const Result<Epilogue> epilogue = to_epilogue(epilogue_flags, Bias::none);
  if (!epilogue) return epilogue.error();
  p.epilogue = *epilogue;

  inputs.shape_d = {p.m, p.n};
  if (a->batched || b->batched) inputs.shape_d.insert(inputs.shape_d.begin(), p.batch);
  inputs.lines = {line_about("A", files.a, *a, p.type_b), line_about("B", files.b, *b, p.type_b)};
  inputs.a = convert_and_warn(std::move(a->data), a->type, p.type_a, "A", inputs);
  inputs.b = convert_and_warn(std::move(b->data), b->type, p.type_b, "B", inputs);
  if (Status s = read_c(files, inputs); !s) return s.error();
  if (Status s = read_bias(files, inputs); !s) return s.error();

  const Result<GemmProblem> checked = validate(p);
  if (!checked) return checked.error();
  p = *checked;
  return inputs;
}

Result<std::vector<std::byte>> read_result(const std::string& path, const GemmInputs& inputs, bool bf16_as_uint16) {
  Result<Matrices> d = read_matrices(path, false, bf16_as_uint16);
  if (!d) return d.error();
  const GemmProblem& p = inputs.problem;
  if (d->rows != p.m || d->columns != p.n || d->batch != p.batch)
    return mismatch(fmt::format("D ({}) is {}; the product has {} of {} x {}", path, extents(*d), p.batch, p.m, p.n));
  if (!same_type(d->type, p.type_d))
    return mismatch(
        fmt::format("D ({}) holds {}, the product would be {}; pass --out-type", path, to_string(d->type), sluice::to_string(p.type_d)));
  make_row_major(*d);
  return std::move(d->data);
}

}  // namespace sluice::cli
