#include "gemm_inputs.hpp"

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "choices.hpp"
#include "fp8_result.hpp"
#include "npy.hpp"
#include "operands.hpp"
#include "w4_operand.hpp"

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

struct Operands {
  Matrices a, b;
  W4Format w4;  // of packed weights: b's data are those, and its extents what they stand for
};

// Packed weights take the user's word: their bytes could be anything.
bool wants_w4(const GemmFiles& files) {
  const std::optional<TypePair> types = parse_type_pair(files.type);
  return types && types->b == DataType::int4;
}

Matrices as_matrices(W4Operand& operand, std::int64_t batch, std::int64_t k, std::int64_t n) {
  Matrices b{.type = NpyType::bytes, .batched = batch > 0, .batch = std::max<std::int64_t>(batch, 1), .rows = k, .columns = n};
  b.layout = Layout::column_major;
  b.data = std::move(operand.packed);
  return b;
}

Result<Operands> random_operands(const GemmFiles& files, const Groups& groups) {
  const bool ragged = groups.grouping == Grouping::ragged, along_k = groups.grouping == Grouping::along_k;
  const std::int64_t m = ragged && files.m == 0 && !groups.numbers.empty() ? groups.numbers.back() : files.m;
  const std::int64_t k = along_k && files.k == 0 && !groups.numbers.empty() ? groups.numbers.back() : files.k;
  for (const auto& [flag, extent] : {std::pair{"--m", m}, {"--n", files.n}, {"--k", k}})
    if (extent <= 0)
      return mismatch(
          fmt::format("{} = {} must be above 0 where no files are given; pass A.npy and B.npy, or --m, --n and --k", flag, extent));
  constexpr double kMostElements = 1e10;
  const double matrices = static_cast<double>(std::max<std::int64_t>(1, groups.count));
  if (static_cast<double>(std::max(m, files.n)) * static_cast<double>(k) * matrices > kMostElements)
    return mismatch("--m, --n and --k make operands of more than 1e10 random numbers; pass smaller ones");
  const Layout layout_a = along_k ? Layout::column_major : Layout::row_major, layout_b = along_k ? Layout::row_major : Layout::column_major;
  Operands operands;
  operands.a = random_matrices(ragged || along_k ? 0 : groups.count, m, k, layout_a, 2 * files.data_seed);
  const std::int64_t batch = along_k ? 0 : groups.count;
  const std::uint64_t seed = 2 * files.data_seed + 1;
  if (!wants_w4(files)) {
    operands.b = random_matrices(batch, k, files.n, layout_b, seed);
    return operands;
  }
  const DataType type = parse_type_pair(files.type)->a;
  Result<W4Operand> w4 = random_w4(std::max<std::int64_t>(batch, 1), files.n, k, type, files.w4, seed);
  if (!w4) return w4.error();
  operands.w4 = w4->format;
  operands.b = as_matrices(*w4, batch, k, files.n);
  return operands;
}

// A from a file, and B from one of `sluice pack`.
Result<Operands> read_w4_operands(const GemmFiles& files, const Groups& groups) {
  if (files.m != 0 || files.k != 0) return mismatch("--m and --k are for random operands; leave them out, A's file says");
  if (files.b_is_transposed) return mismatch("--transpose-b is for plain matrices; packed weights lie in one way: leave it out");
  if (groups.grouping != Grouping::none)
    return mismatch("a file of packed weights holds one matrix, and groups need one each; multiply them one by one");
  Operands operands;
  Result<Matrices> a = read_matrices(files.a, files.a_is_transposed, files.bf16_as_uint16);
  if (!a) return a.error();
  Result<W4Operand> w4 = read_packed_w4(files.b, files.n, a->columns, files.w4);
  if (!w4) return w4.error();
  operands.w4 = w4->format;
  operands.b = as_matrices(*w4, 0, a->columns, files.n);
  operands.a = std::move(*a);
  return operands;
}

Result<Operands> read_operands(const GemmFiles& files, const Groups& groups) {
  if (files.a.empty()) return random_operands(files, groups);
  if (files.b.empty()) return mismatch(fmt::format("{} has nothing to be multiplied with; pass B's file behind it", files.a));
  if (wants_w4(files)) return read_w4_operands(files, groups);
  if (files.m != 0 || files.n != 0 || files.k != 0)
    return mismatch("--m, --n and --k are for random operands; leave them out, the files say");
  Result<Matrices> a = read_matrices(files.a, files.a_is_transposed, files.bf16_as_uint16);
  if (!a) return a.error();
  Result<Matrices> b = read_matrices(files.b, files.b_is_transposed, files.bf16_as_uint16);
  if (!b) return b.error();
  return Operands{std::move(*a), std::move(*b), {}};
}

// FP8 numbers are operands alone.
Status refuse_bytes(const std::string& path, NpyType type) {
  if (type != NpyType::bytes) return Nothing{};
  return Error{ErrorCode::bad_format, path + ": holds bytes; only A and B may be FP8: save numbers of another type"};
}

std::string line_about(const char* what, const std::string& path, const Matrices& x) {
  return fmt::format("{:<4} {}: {} {}, {}", what, path.empty() ? "random" : path, extents(x), to_string(x.type),
                     sluice::to_string(x.layout));
}

std::string line_about(const char* what, const std::string& path, const Matrices& x, DataType type) {
  std::string line = line_about(what, path, x);
  if (x.rearranged) line += ", copied to another order";
  if (!same_type(x.type, type)) line += fmt::format(", converted to {}", sluice::to_string(type));
  return line;
}

std::vector<std::byte> convert_and_warn(std::vector<std::byte> data, NpyType from, DataType to, const char* what, GemmInputs& inputs) {
  std::int64_t too_large = 0;
  std::vector<std::byte> converted = convert(std::move(data), from, to, too_large);
  if (too_large > 0)
    inputs.warnings.push_back(fmt::format("{} too large for {} and became infinite; scale them, or pass another type",
                                          elements_are(too_large, what), sluice::to_string(to)));
  return converted;
}

std::optional<DataType> multipliable(NpyType type) {
  if (type == NpyType::bf16) return DataType::bf16;
  if (type == NpyType::fp16) return DataType::fp16;
  return std::nullopt;
}

// A 16-bit input decides; wider ones are converted to it. Two that differ need the user's word, as do bytes.
Result<TypePair> type_of_inputs(const GemmFiles& files, NpyType type_a, NpyType type_b) {
  std::optional<TypePair> given;
  if (Status s = choose_into(given, "--type", files.type, &parse_type_pair, kInputTypes); !s) return s.error();
  const bool w4 = given && given->b == DataType::int4;
  if (given && !w4 && is_fp8(given->a) != is_fp8(given->b))
    return mismatch(
        fmt::format("--type {}: FP8 goes with FP8, or e4m3 with packed int4; pass two of e4m3 and e5m2, or one type for both", files.type));
  for (const auto& [path, type] : {std::pair{files.a, type_a}, {files.b, w4 ? type_a : type_b}})
    if (type == NpyType::bytes && !(given && is_fp8(given->a)))
      return mismatch(fmt::format(
          "{} holds bytes; if those are FP8 numbers, pass --type e4m3 or --type e5m2 (A's and B's: e4m3,e5m2), if packed weights "
          "of 4 bits behind A, --type bf16,int4",
          path));
  if (given) return *given;
  const std::optional<DataType> a = multipliable(type_a), b = multipliable(type_b);
  if (a && b && *a != *b)
    return mismatch(fmt::format("{} holds {} and {} holds {}; pass --type {} or --type {} to convert one of them", files.a,
                                to_string(type_a), files.b, to_string(type_b), sluice::to_string(*a), sluice::to_string(*b)));
  const DataType type = a ? *a : b.value_or(DataType::bf16);
  return TypePair{type, type};
}

// How many matrices the whole product has, where one matrix may stand for all.
Result<std::int64_t> common_batch(const GemmFiles& files, const Groups& groups, const Matrices& a, const Matrices& b) {
  if (groups.grouping != Grouping::none) {
    if (Status s = check_groups(groups, files.a, a, files.b, b); !s) return s.error();
    return groups.count;
  }
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
  if (Status s = refuse_bytes(files.c, c->type); !s) return s;
  if (c->rows != p.m || c->columns != p.n || (c->batch != 1 && c->batch != row_matrices(p)))
    return mismatch(fmt::format("C ({}) is {}; D has {} of {} x {}", files.c, extents(*c), row_matrices(p), p.m, p.n));
  make_row_major(*c);
  p.batch_stride_c = batch_stride(*c, row_matrices(p));
  inputs.lines.push_back(line_about("C", files.c, *c, p.type_d));
  inputs.c = convert_and_warn(std::move(c->data), c->type, p.type_d, "C", inputs);
  return Nothing{};
}

void take_bias(const GemmFiles& files, NpyArray array, const std::string& extents, GemmInputs& inputs) {
  const DataType type = bias_type(inputs.problem.type_d);
  inputs.lines.push_back(fmt::format("{:<4} {}: {} {} {}{}", "bias", files.bias, extents, to_string(array.type), files.bias_kind,
                                     same_type(array.type, type) ? "" : fmt::format(", converted to {}", sluice::to_string(type))));
  inputs.bias = convert_and_warn(std::move(array.data), array.type, type, "the bias", inputs);
}

// A row for each matrix of the batch, or each group.
Status take_bias_of_groups(const GemmFiles& files, NpyArray array, GemmInputs& inputs) {
  GemmProblem& p = inputs.problem;
  if (array.shape != std::vector<std::int64_t>{p.batch, p.n} || array.fortran_order)
    return mismatch(fmt::format("{}: has shape {}{}; a per_group_column bias has {} in C order", files.bias, shape_text(array.shape),
                                array.fortran_order ? " in Fortran order" : "", shape_text({p.batch, p.n})));
  p.epilogue.bias = Bias::per_group_column;
  take_bias(files, std::move(array), fmt::format("{} x {}", p.batch, p.n), inputs);
  return Nothing{};
}

Status read_bias(const GemmFiles& files, GemmInputs& inputs) {
  GemmProblem& p = inputs.problem;
  if (files.bias.empty()) return Nothing{};
  const Result<Bias> kind = choose("--bias-kind", files.bias_kind, &parse_bias, "per_row, per_column, per_group_column");
  if (!kind) return kind.error();
  if (*kind == Bias::none) return mismatch("--bias-kind none contradicts --bias; leave one of them out");
  Result<NpyArray> array = read_npy(files.bias, files.bf16_as_uint16);
  if (!array) return array.error();
  if (Status s = refuse_bytes(files.bias, array->type); !s) return s;
  if (*kind == Bias::per_group_column) return take_bias_of_groups(files, std::move(*array), inputs);
  const bool per_row = *kind == Bias::per_row;
  const std::int64_t wanted = per_row ? p.m : p.n, other = per_row ? p.n : p.m;
  if (array->shape.size() != 1)
    return mismatch(
        fmt::format("{}: has shape {}; a bias has one dimension: save array.reshape(-1)", files.bias, shape_text(array->shape)));
  if (array->shape[0] != wanted)
    return mismatch(fmt::format("{}: has {} elements, a {} bias needs {}{}", files.bias, array->shape[0], files.bias_kind, wanted,
                                array->shape[0] == other ? fmt::format("; pass --bias-kind {}", per_row ? "per_column" : "per_row") : ""));
  p.epilogue.bias = *kind;
  take_bias(files, std::move(*array), fmt::format("{}", wanted), inputs);
  return Nothing{};
}

Status refuse_scales(const char* flag, const WantedScales& wanted, const char* way_out) {
  if (!wanted.path.empty() || (!wanted.scaling.empty() && wanted.scaling != "none"))
    return mismatch(fmt::format("--{}-{} is for FP8 operands alone; {}", wanted.path.empty() ? "scaling" : "scale", flag, way_out));
  return Nothing{};
}
Status refuse_scales(const GemmFiles& files, const char* way_out) {
  if (Status s = refuse_scales("a", files.scales_a, way_out); !s) return s;
  return refuse_scales("b", files.scales_b, way_out);
}

void take_fp8(Fp8Operand&& operand, std::vector<std::byte>& data, std::vector<float>& scales, GemmInputs& inputs) {
  inputs.lines.insert(inputs.lines.end(), operand.lines.begin(), operand.lines.end());
  inputs.warnings.insert(inputs.warnings.end(), operand.warnings.begin(), operand.warnings.end());
  data = std::move(operand.data);
  scales = std::move(operand.scales);
}

// A as FP8, and what of the problem follows from how it and its scales lie.
Result<Fp8Operand> fp8_a(const GemmFiles& files, const Operands& operands, GemmProblem& p) {
  const bool along_k = p.grouping == Grouping::along_k;  // A is one matrix, and so are its scales
  Result<Fp8Operand> a = to_fp8(operands.a, OperandName::a, p.type_a, files.scales_a, along_k ? 1 : row_matrices(p));
  if (!a) return a;
  p.lda = a->leading;
  p.scaling_a = a->scaling;
  p.scale_layout_a = a->scale_layout;
  p.batch_stride_scale_a = a->batch_stride_scale;
  return a;
}

// Of A beside weights of 4 bits: with its columns in their order.
Status take_16_bit_a(const GemmFiles& files, Operands& operands, GemmInputs& inputs) {
  const DataType type = inputs.problem.type_a;
  make_row_major(operands.a);
  inputs.lines = {line_about("A", files.a, operands.a, type)};
  inputs.a = convert_and_warn(std::move(operands.a.data), operands.a.type, type, "A", inputs);
  if (files.w4_order.empty()) return Nothing{};
  Result<std::vector<std::byte>> ordered = order_columns(inputs.a, operands.a.batch * operands.a.rows, operands.a.columns, files.w4_order);
  if (!ordered) return ordered.error();
  inputs.a = std::move(*ordered);
  inputs.lines.push_back(fmt::format("     A's columns brought into the order of {}", files.w4_order));
  return Nothing{};
}

Status take_fp8_a(const GemmFiles& files, const Operands& operands, GemmInputs& inputs) {
  if (!files.w4_order.empty())
    return mismatch("--order is for activations of 16 bits; bring A's columns into that order before they become FP8");
  Result<Fp8Operand> a = fp8_a(files, operands, inputs.problem);
  if (!a) return a.error();
  inputs.lines = {line_about("A", files.a, operands.a) + a->how};
  take_fp8(std::move(*a), inputs.a, inputs.scale_a, inputs);
  return Nothing{};
}

Status take_w4_operands(const GemmFiles& files, Operands& operands, GemmInputs& inputs) {
  constexpr const char* kWayOut = "weights of 4 bits bring theirs packed: leave it out";
  GemmProblem& p = inputs.problem;
  const bool of_bytes = is_fp8(p.type_a);
  if (Status s = of_bytes ? refuse_scales("b", files.scales_b, kWayOut) : refuse_scales(files, kWayOut); !s) return s;
  p.w4 = operands.w4;
  if (Status s = of_bytes ? take_fp8_a(files, operands, inputs) : take_16_bit_a(files, operands, inputs); !s) return s;
  inputs.lines.push_back(fmt::format("{:<4} {}: {} int4, {}{}, packed", "B", files.b.empty() ? "random" : files.b, extents(operands.b),
                                     p.w4.group_size == 0 ? "whole columns" : fmt::format("groups of {}", p.w4.group_size),
                                     p.w4.zero_points ? " with zero points" : ""));
  inputs.b = std::move(operands.b.data);
  return Nothing{};
}

// A and B as the problem's types, and what of the problem follows from how they lie.
Status take_16_bit_operands(const GemmFiles& files, Operands& operands, GemmInputs& inputs) {
  GemmProblem& p = inputs.problem;
  if (Status s = refuse_scales(files, "pass --type e4m3, or use --alpha"); !s) return s;
  p.layout_a = operands.a.layout;
  p.layout_b = operands.b.layout;
  inputs.lines = {line_about("A", files.a, operands.a, p.type_a), line_about("B", files.b, operands.b, p.type_b)};
  inputs.a = convert_and_warn(std::move(operands.a.data), operands.a.type, p.type_a, "A", inputs);
  inputs.b = convert_and_warn(std::move(operands.b.data), operands.b.type, p.type_b, "B", inputs);
  return Nothing{};
}

Status take_fp8_operands(const GemmFiles& files, const Operands& operands, GemmInputs& inputs) {
  GemmProblem& p = inputs.problem;
  Result<Fp8Operand> a = fp8_a(files, operands, p);
  if (!a) return a.error();
  const bool along_k = p.grouping == Grouping::along_k;  // B is one matrix as well
  Result<Fp8Operand> b = to_fp8(operands.b, OperandName::b, p.type_b, files.scales_b, along_k ? 1 : p.batch);
  if (!b) return b.error();
  p.ldb = b->leading;
  p.scaling_b = b->scaling;
  p.scale_layout_b = b->scale_layout;
  p.batch_stride_scale_b = b->batch_stride_scale;
  inputs.lines = {line_about("A", files.a, operands.a) + a->how, line_about("B", files.b, operands.b) + b->how};
  take_fp8(std::move(*a), inputs.a, inputs.scale_a, inputs);
  take_fp8(std::move(*b), inputs.b, inputs.scale_b, inputs);
  return Nothing{};
}

Status take_operands(const GemmFiles& files, Operands& operands, GemmInputs& inputs) {
  const GemmProblem& p = inputs.problem;
  if (p.type_b == DataType::int4) return take_w4_operands(files, operands, inputs);
  if (is_fp8(p.type_a)) return take_fp8_operands(files, operands, inputs);
  return take_16_bit_operands(files, operands, inputs);
}

}  // namespace

Result<GemmInputs> read_gemm_inputs(const GemmFiles& files) {
  Result<Groups> groups = read_groups(files.groups);
  if (!groups) return groups.error();
  Result<Operands> operands = read_operands(files, *groups);
  if (!operands) return operands.error();
  Matrices &a = operands->a, &b = operands->b;
  const Result<TypePair> types = type_of_inputs(files, a.type, b.type);
  if (!types) return types.error();
  if (Status s = check_w4_flags(files.w4, types->b); !s) return s.error();
  if (!files.w4_order.empty() && types->b != DataType::int4)
    return mismatch("--order is for weights of 4 bits; pass --type bf16,int4, or leave it out");
  if (Status s = check_inner(files, a, b); !s) return s.error();
  const Result<std::int64_t> batch = common_batch(files, *groups, a, b);
  if (!batch) return batch.error();
  if (is_fp8(types->a))
    if (Status s = check_fp8_groups(*groups, types->a); !s) return s.error();

  GemmInputs inputs;
  GemmProblem& p = inputs.problem;
  p = {.m = a.rows,
       .n = b.columns,
       .k = a.columns,
       .batch = *batch,
       .type_a = types->a,
       .type_b = types->b,
       .type_d = usual_result_type(types->a),
       .batch_stride_a = batch_stride(a, *batch),
       .batch_stride_b = batch_stride(b, *batch),
       .grouping = groups->grouping,
       .expected_rows = files.groups.rows.expected,
       .most_rows = files.groups.rows.most};
  if (Status s = choose_into(p.type_d, "--out-type", files.out_type, &parse_data_type, kOutputTypes); !s) return s.error();
  EpilogueFlags epilogue_flags = files.epilogue;
  if (!files.c.empty() && !epilogue_flags.beta) epilogue_flags.beta = 1.0f;
  const Result<Epilogue> epilogue = to_epilogue(epilogue_flags, Bias::none);
  if (!epilogue) return epilogue.error();
  p.epilogue = *epilogue;

  inputs.shape_d = {p.m, p.n};
  if (p.grouping == Grouping::along_k || (p.grouping != Grouping::ragged && (a.batched || b.batched)))
    inputs.shape_d.insert(inputs.shape_d.begin(), p.batch);
  if (Status s = take_operands(files, *operands, inputs); !s) return s.error();
  if (Status s = read_c(files, inputs); !s) return s.error();
  if (Status s = read_bias(files, inputs); !s) return s.error();
  Result<std::vector<float>> scale_d = read_result_scales(files.scales_d, files.d_is_there, p);
  if (!scale_d) return scale_d.error();
  inputs.scale_d = std::move(*scale_d);

  if (p.grouping != Grouping::none) {
    inputs.lines.push_back("     " + line_about(*groups));
    inputs.groups = std::move(*groups);
  }

  const Result<GemmProblem> checked = validate(p);
  if (!checked) return checked.error();
  p = *checked;
  return inputs;
}

double needed_flops(const GemmInputs& inputs) {
  const GemmProblem& p = inputs.problem;
  if (p.grouping == Grouping::none || p.epilogue.alpha == 0.0f) return flops(p);
  return 2.0 * static_cast<double>(inputs.groups.size()) * static_cast<double>(p.n) *
         static_cast<double>(p.grouping == Grouping::along_k ? p.m : p.k);
}

Result<std::vector<std::byte>> read_result(const std::string& path, const GemmInputs& inputs, bool bf16_as_uint16) {
  Result<Matrices> d = read_matrices(path, false, bf16_as_uint16);
  if (!d) return d.error();
  const GemmProblem& p = inputs.problem;
  if (!is_fp8(p.type_d))
    if (Status s = refuse_bytes(path, d->type); !s) return s.error();
  if (d->rows != p.m || d->columns != p.n || d->batch != row_matrices(p))
    return mismatch(fmt::format("D ({}) is {}; the product has {} of {} x {}", path, extents(*d), row_matrices(p), p.m, p.n));
  if (!same_type(d->type, p.type_d))
    return mismatch(
        fmt::format("D ({}) holds {}, the product would be {}; pass --out-type", path, to_string(d->type), sluice::to_string(p.type_d)));
  make_row_major(*d);
  return std::move(d->data);
}

}  // namespace sluice::cli
