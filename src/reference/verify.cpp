#include "sluice/verify.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "core/check_arguments.hpp"
#include "core/check_group_sizes.hpp"
#include "core/groups.hpp"
#include "core/scale_layout.hpp"
#include "reference/dequantised.hpp"
#include "reference/error_bound.hpp"
#include "reference/fp8_result.hpp"
#include "reference/general_groups.hpp"
#include "reference/number_conversion.hpp"
#include "reference/parallel.hpp"

namespace sluice {
namespace {

double element(const void* base, DataType type, std::int64_t index) {
  switch (type) {
    case DataType::bf16:
      return bf16_to_float(static_cast<const std::uint16_t*>(base)[index]);
    case DataType::fp16:
      return fp16_to_float(static_cast<const std::uint16_t*>(base)[index]);
    case DataType::e4m3:
      return e4m3_to_float(static_cast<const std::uint8_t*>(base)[index]);
    case DataType::e5m2:
      return e5m2_to_float(static_cast<const std::uint8_t*>(base)[index]);
    case DataType::int4:  // dequantised before
    case DataType::fp32:
      break;
  }
  return static_cast<const float*>(base)[index];
}

bool is_integer(double value) { return std::nearbyint(value) == value; }

struct Place {
  std::int64_t batch, row, column;
};

// The problem with its memory: what is where, in double precision.
class Matrices {
 public:
  Matrices(const GemmProblem& problem, const GemmArguments& arguments)
      : problem_(problem),
        arguments_(arguments),
        scales_a_(scale_strides_a(problem)),
        scales_b_(scale_strides_b(problem)),
        scales_d_(scale_strides_d(problem)) {}

  double a(std::int64_t batch, std::int64_t row, std::int64_t k) const {
    const GemmProblem& p = problem_;
    const std::int64_t within = p.layout_a == Layout::row_major ? row * p.lda + k : k * p.lda + row;
    return element(arguments_.a, p.type_a, batch * p.batch_stride_a + within);
  }
  double b(std::int64_t batch, std::int64_t k, std::int64_t column) const {
    const GemmProblem& p = problem_;
    const std::int64_t within = p.layout_b == Layout::row_major ? k * p.ldb + column : column * p.ldb + k;
    return element(arguments_.b, p.type_b, batch * p.batch_stride_b + within);
  }
  float scale_a(std::int64_t batch, std::int64_t row, std::int64_t k) const {
    return problem_.scaling_a == Scaling::none ? 1.0f : arguments_.scale_a[scales_a_.at(batch, row, k)];
  }
  float scale_b(std::int64_t batch, std::int64_t k, std::int64_t column) const {
    return problem_.scaling_b == Scaling::none ? 1.0f : arguments_.scale_b[scales_b_.at(batch, column, k)];
  }
  double c(const Place& at) const {
    if (!reads_c(problem_)) return 0;
    return element(arguments_.c, problem_.type_d, at.batch * problem_.batch_stride_c + at.row * problem_.ldc + at.column);
  }
  double bias(const Place& at) const {
    if (problem_.epilogue.bias == Bias::none) return 0;
    const std::int64_t first = problem_.epilogue.bias == Bias::per_group_column ? at.batch * problem_.n : 0;
    return element(arguments_.bias, bias_type(problem_.type_d), problem_.epilogue.bias == Bias::per_row ? at.row : first + at.column);
  }
  float scale_d(const Place& at) const {
    return problem_.scaling_d == Scaling::none ? 1.0f : arguments_.scale_d[scales_d_.at(at.batch, at.row, at.column)];
  }
  double d(const Place& at) const {
    return element(arguments_.d, problem_.type_d, at.batch * problem_.batch_stride_d + at.row * problem_.ldd + at.column);
  }

 private:
  const GemmProblem& problem_;
  const GemmArguments& arguments_;
  const ScaleStrides scales_a_, scales_b_, scales_d_;
};

// Adds one element to a report. Of equally bad ones the first is kept, so that the threads' order does not show.
void count(VerifyReport& report, const Place& at, double got, double reference, const Judgement& judgement) {
  ++report.checked;
  if (judgement.verdict == ElementVerdict::wrong) ++report.wrong;
  if (judgement.verdict == ElementVerdict::not_a_number) ++report.not_a_number;
  const bool first = report.worst_row < 0;
  const bool earlier = std::tie(at.batch, at.row, at.column) < std::tie(report.worst_batch, report.worst_row, report.worst_column);
  if (!first && !(judgement.ratio > report.worst_ratio || (judgement.ratio == report.worst_ratio && earlier))) return;
  report.worst_ratio = judgement.ratio;
  report.worst_batch = at.batch;
  report.worst_row = at.row;
  report.worst_column = at.column;
  report.worst_got = got;
  report.worst_reference = reference;
}

void merge(VerifyReport& into, const VerifyReport& from) {
  const std::int64_t checked = into.checked + from.checked, wrong = into.wrong + from.wrong;
  const std::int64_t not_a_number = into.not_a_number + from.not_a_number;
  if (from.worst_row >= 0)
    count(into, {from.worst_batch, from.worst_row, from.worst_column}, from.worst_got, from.worst_reference,
          {ElementVerdict::right, from.worst_ratio});
  into.checked = checked;
  into.wrong = wrong;
  into.not_a_number = not_a_number;
}

constexpr std::int64_t kBlock = 64;                // of D, in rows and columns
constexpr std::int64_t kDepth = kScaleBlockElems;  // of K at a time, at most: scales do not change within

// What an element's sums are over so much of K, added up step by step, and one operand's scale there.
struct BlockSums {
  double product = 0;
  double magnitude = 0;
  double lost = 0;
};
struct StepSums {
  double product = 0;
  double magnitude = 0;
  double largest = 0;
};
void add(BlockSums& block, const StepSums& step) {
  block.lost += lost_in_fp8_step(step.largest, std::abs(block.product) + block.lost);
  block.product += step.product;
  block.magnitude += step.magnitude;
}
struct BlockScale {
  double value = 1;
  double granule = 1;
};
BlockScale block_scale(float scale) { return {scale, granule_of(scale)}; }

void add(ElementSums& sums, const BlockSums& block, double scale) {
  sums.product += block.product * scale;
  sums.magnitude += block.magnitude * std::abs(scale);
  sums.largest_block = std::max(sums.largest_block, block.magnitude);
  sums.lost += block.lost * std::abs(scale);
}

// One thread's state: a block of D, its sums, and the panels they are made from.
class Verifier {
 public:
  Verifier(const GemmProblem& problem, const Matrices& matrices, const std::int32_t* sizes, const Dequantised& weights)
      : rounding_(weights.rounding()),
        short_elems_(weights.short_sum_elems()),
        problem_(problem),
        values_(problem),
        matrices_(matrices),
        sizes_(sizes),
        a_(kBlock * kDepth),
        b_(kDepth * kBlock),
        blocks_(kBlock),
        sums_(kBlock * kBlock),
        strips_(finds_scales(problem) ? kBlock * kScaleBlockElems : 0) {
    if (is_fp8(problem.type_d)) values_.type_d = DataType::fp32;
  }

  // row_end: behind the last row that counts. Of kBlock columns, or of those that share a scale.
  void check_block(std::int64_t batch, std::int64_t row, std::int64_t row_end, std::int64_t column, VerifyReport& report) {
    if (!finds_scales(problem_))
      return bound_block(batch, row, row_end, column, [&](const Place& at, const ElementBound& bound) { check(at, bound, true, report); });
    const auto bound_of = [&](const Place& at) -> ElementBound& {
      return strips_[static_cast<std::size_t>((at.row - row) * kScaleBlockElems + at.column - column)];
    };
    const std::int64_t column_end = std::min<std::int64_t>(column + kScaleBlockElems, problem_.n);
    for (std::int64_t half = column; half < column_end; half += kBlock)
      bound_block(batch, row, row_end, half, [&](const Place& at, const ElementBound& bound) { bound_of(at) = bound; });
    for (std::int64_t r = row; r < std::min(row + kBlock, row_end); ++r) {
      LargestMagnitude largest;
      for (std::int64_t c = column; c < column_end; ++c) largest.add(bound_of({batch, r, c}));
      const bool scale_is_right = largest.allows(problem_.type_d, matrices_.scale_d({batch, r, column}));
      for (std::int64_t c = column; c < column_end; ++c) check({batch, r, c}, bound_of({batch, r, c}), scale_is_right, report);
    }
  }

  // With its scale, if that was found from the 128 columns it belongs to.
  void check_element(const Place& at, VerifyReport& report) const {
    LargestMagnitude largest;
    const std::int64_t first = at.column / kScaleBlockElems * kScaleBlockElems;
    for (std::int64_t c = first; finds_scales(problem_) && c < std::min<std::int64_t>(first + kScaleBlockElems, problem_.n); ++c)
      largest.add(bound_element_at({at.batch, at.row, c}));
    check(at, bound_element_at(at), !finds_scales(problem_) || largest.allows(problem_.type_d, matrices_.scale_d(at)), report);
  }

 private:
  template <class Take>
  void bound_block(std::int64_t batch, std::int64_t row, std::int64_t row_end, std::int64_t column, Take&& take) {
    const std::int64_t rows = std::min(kBlock, row_end - row), columns = std::min(kBlock, problem_.n - column);
    std::fill(sums_.begin(), sums_.end(), ElementSums{});
    rows_.fill({});
    columns_.fill({});
    const Depth depth = depth_of(batch);
    for (std::int64_t k = depth.first; k < depth.end; k += short_elems_)
      add_panel(batch, row, rows, column, columns, k, std::min(short_elems_, depth.end - k));
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c) {
        ElementSums& sums = sums_[static_cast<std::size_t>(r * kBlock + c)];
        const Vector &of_a = rows_[static_cast<std::size_t>(r)], &of_b = columns_[static_cast<std::size_t>(c)];
        sums.integers = of_a.integers && of_b.integers;
        sums.rounding = rounding_;
        sums.short_elems = short_elems_;
        sums.scale_granule = of_a.granule * of_b.granule;
        const Place at{batch, row + r, column + c};
        take(at, bound(at, sums));
      }
  }

  ElementBound bound_element_at(const Place& at) const {
    ElementSums sums{.short_elems = short_elems_, .rounding = rounding_};
    double granule_a = 1, granule_b = 1;
    const Depth depth = depth_of(at.batch);
    for (std::int64_t first = depth.first; first < depth.end; first += short_elems_) {
      BlockSums block;
      for (std::int64_t step_at = first; step_at < std::min(depth.end, first + short_elems_); step_at += kFp8StepElems) {
        StepSums step;
        for (std::int64_t k = step_at; k < std::min(depth.end, step_at + kFp8StepElems); ++k) {
          const double a = matrices_.a(at.batch, at.row, k), b = matrices_.b(at.batch, k, at.column);
          step.product += a * b;
          step.largest = std::max(step.largest, std::abs(a * b));
          step.magnitude += std::abs(a * b);
          sums.integers = sums.integers && is_integer(a) && is_integer(b);
        }
        add(block, step);
      }
      const BlockScale a = block_scale(matrices_.scale_a(at.batch, at.row, first));
      const BlockScale b = block_scale(matrices_.scale_b(at.batch, first, at.column));
      granule_a = std::min(granule_a, a.granule);
      granule_b = std::min(granule_b, b.granule);
      add(sums, block, a.value * b.value);
    }
    sums.scale_granule = granule_a * granule_b;
    return bound(at, sums);
  }

  // What is known of a row of A or a column of B.
  struct Vector {
    bool integers = true;
    double granule = 1;  // of its scales
    double scale = 1;    // in the panel at hand
  };

  // What of K a matrix of D is made from.
  struct Depth {
    std::int64_t first, end;
  };
  Depth depth_of(std::int64_t batch) const {
    if (!reads_a_and_b(problem_)) return {0, 0};
    if (!is_grouped_along_k(problem_)) return {0, problem_.k};
    const GroupRange k = range_of_group(problem_, sizes_, batch);
    return {k.first, std::int64_t{k.first} + k.count};
  }

  ElementBound bound(const Place& at, const ElementSums& sums) const {
    return bound_element(is_grouped_along_k(problem_) ? problem_of(at.batch) : values_, sums, matrices_.c(at), matrices_.bias(at));
  }
  GemmProblem problem_of(std::int64_t batch) const {
    GemmProblem p = problem_;
    const Depth depth = depth_of(batch);
    p.k = depth.end - depth.first;
    return p;
  }
  void check(const Place& at, const ElementBound& bound, bool scale_is_right, VerifyReport& report) const {
    const double got = matrices_.d(at);
    if (!is_fp8(problem_.type_d)) return count(report, at, got, bound.reference, judge(bound, got));
    const float scale = matrices_.scale_d(at);
    const Judgement judgement = judge(quantised(bound, scale, problem_.type_d), got);
    count(report, at, got * scale, bound.reference, scale_is_right ? judgement : Judgement{ElementVerdict::wrong, kWrongScale});
  }

  void add_panel(std::int64_t batch, std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns, std::int64_t k,
                 std::int64_t depth) {
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t i = 0; i < depth; ++i) {
        const double value = a_[static_cast<std::size_t>(r * kDepth + i)] = matrices_.a(batch, row + r, k + i);
        if (!is_integer(value)) rows_[static_cast<std::size_t>(r)].integers = false;
      }
    for (std::int64_t c = 0; c < columns; ++c)
      for (std::int64_t i = 0; i < depth; ++i) {
        const double value = b_[static_cast<std::size_t>(i * kBlock + c)] = matrices_.b(batch, k + i, column + c);
        if (!is_integer(value)) columns_[static_cast<std::size_t>(c)].integers = false;
      }
    for (std::int64_t r = 0; r < rows; ++r) take_scale(matrices_.scale_a(batch, row + r, k), rows_[static_cast<std::size_t>(r)]);
    for (std::int64_t c = 0; c < columns; ++c) take_scale(matrices_.scale_b(batch, k, column + c), columns_[static_cast<std::size_t>(c)]);
    for (std::int64_t r = 0; r < rows; ++r) {
      std::fill(blocks_.begin(), blocks_.end(), BlockSums{});
      for (std::int64_t i = 0; i < depth; i += kFp8StepElems) add_step(r, i, std::min<std::int64_t>(kFp8StepElems, depth - i), columns);
      for (std::int64_t c = 0; c < columns; ++c)
        add(sums_[static_cast<std::size_t>(r * kBlock + c)], blocks_[static_cast<std::size_t>(c)],
            rows_[static_cast<std::size_t>(r)].scale * columns_[static_cast<std::size_t>(c)].scale);
    }
  }

  // Adds `count` of K from i on to one row's sums.
  void add_step(std::int64_t row, std::int64_t i, std::int64_t count, std::int64_t columns) {
    std::array<double, kBlock> products{}, magnitudes{}, largest{};  // apart, so that the loop is vectorised
    for (std::int64_t k = i; k < i + count; ++k) {
      const double a = a_[static_cast<std::size_t>(row * kDepth + k)];
      const double* b = b_.data() + k * kBlock;
      for (std::int64_t c = 0; c < columns; ++c) {
        const double product = a * b[c], magnitude = std::abs(product);
        const auto at = static_cast<std::size_t>(c);
        products[at] += product;
        magnitudes[at] += magnitude;
        largest[at] = std::max(largest[at], magnitude);
      }
    }
    for (std::size_t c = 0; c < static_cast<std::size_t>(columns); ++c) add(blocks_[c], {products[c], magnitudes[c], largest[c]});
  }

  static void take_scale(float scale, Vector& vector) {
    const BlockScale taken = block_scale(scale);
    vector.scale = taken.value;
    vector.granule = std::min(vector.granule, taken.granule);
  }

  double rounding_;  // of B
  std::int64_t short_elems_;
  static constexpr double kWrongScale = std::numeric_limits<double>::infinity();

  const GemmProblem& problem_;
  GemmProblem values_;  // the same with a D before it is rounded to FP8
  const Matrices& matrices_;
  const std::int32_t* sizes_;  // of groups
  std::vector<double> a_, b_;
  std::vector<BlockSums> blocks_;  // of one row
  std::vector<ElementSums> sums_;
  std::vector<ElementBound> strips_;  // of rows by the columns that share a scale
  std::array<Vector, kBlock> rows_{}, columns_{};
};

// The rows of D that count: all, or those that groups have.
struct RowBlock {
  std::int64_t batch, row, row_end;
};
class RowTable {
 public:
  RowTable(const GemmProblem& p, const std::int32_t* sizes) {
    for (std::int64_t g = 0; g < p.batch; ++g) {
      const GroupRange group = is_grouped(p) ? range_of_group(p, sizes, g) : GroupRange{0, static_cast<std::int32_t>(p.m)};
      if (group.count > 0) parts_.push_back({{g, group.first, group.first + group.count}, rows_, blocks_});
      rows_ += group.count;
      blocks_ += (group.count + kBlock - 1) / kBlock;
    }
  }

  std::int64_t rows() const { return rows_; }
  std::int64_t blocks() const { return blocks_; }  // of kBlock rows, the last of a group maybe fewer

  RowBlock block(std::int64_t number) const {
    const Part& part = last_from(number, &Part::blocks_before);
    return {part.rows.batch, part.rows.row + (number - part.blocks_before) * kBlock, part.rows.row_end};
  }
  RowBlock row(std::int64_t number) const {
    const Part& part = last_from(number, &Part::rows_before);
    return {part.rows.batch, part.rows.row + number - part.rows_before, part.rows.row_end};
  }

 private:
  struct Part {
    RowBlock rows;
    std::int64_t rows_before, blocks_before;
  };
  const Part& last_from(std::int64_t number, std::int64_t Part::*before) const {
    return *(std::upper_bound(parts_.begin(), parts_.end(), number, [&](std::int64_t n, const Part& part) { return n < part.*before; }) -
             1);
  }

  std::vector<Part> parts_;
  std::int64_t rows_ = 0, blocks_ = 0;
};

__extension__ typedef unsigned __int128 Wide;  // NOLINT(modernize-use-using): __extension__ goes with a typedef alone

// The number of draw `index`, evenly from [0, below): splitmix64, which needs no state, then the high half of a product.
std::int64_t draw(std::uint64_t seed, std::uint64_t index, std::int64_t below) {
  std::uint64_t z = seed * 0xd1342543de82ef95u + (index + 1) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return static_cast<std::int64_t>((static_cast<Wide>(z) * static_cast<std::uint64_t>(below)) >> 64);
}

// The problem as the pointers are to be checked for it: reading on the CPU asks for no more than whole elements.
GemmProblem with_element_alignment(GemmProblem problem) {
  problem.alignment_a_bytes = size_bytes(problem.type_a);
  problem.alignment_b_bytes = std::max(1, size_bytes(problem.type_b));
  problem.alignment_d_bytes = size_bytes(problem.type_d);
  return problem;
}

}  // namespace

Result<VerifyReport> verify(const GemmProblem& unchecked, const GemmArguments& given, const void* c_before, std::int64_t samples,
                            std::uint64_t seed) {
  const Result<GemmProblem> validated = validate(unchecked);
  if (!validated) return validated.error();
  GemmProblem p = *validated;
  constexpr std::int64_t kDeepest = std::int64_t{1} << 22;
  if (reads_a_and_b(p) && p.k > kDeepest)
    return Error{ErrorCode::too_large, "k = " + std::to_string(p.k) + " is over " + std::to_string(kDeepest) +
                                           ": the bound on fp32 sums of that length says nothing; verify slices of k"};
  if (samples < 0)
    return Error{ErrorCode::invalid_argument, "samples = " + std::to_string(samples) + " is negative; pass 0 to check every element"};
  if (!is_empty(p) && reads_c(p) && c_before == nullptr && given.c == given.d && given.c != nullptr)
    return Error{ErrorCode::invalid_argument,
                 "c_before is null, but c is d and beta is not 0: the run has overwritten C; pass a copy of it"};
  GemmArguments arguments = given;
  if (c_before != nullptr && !is_general(p)) arguments.c = c_before;
  if (Status s = check_arguments(with_element_alignment(p), arguments); !s) return s.error();

  VerifyReport report;
  if (is_empty(p)) return report;
  if (is_general(p)) return verify_groups(p, arguments, c_before, samples, seed);
  if (Status s = check_group_sizes(p, arguments.groups); !s) return s.error();
  const Dequantised weights(p, arguments, 0);
  const Matrices matrices(p, arguments);
  const RowTable rows(p, arguments.groups);
  const std::int64_t block_columns = finds_scales(p) ? kScaleBlockElems : kBlock;
  const std::int64_t blocks_n = (p.n + block_columns - 1) / block_columns;
  const double elements = static_cast<double>(rows.rows()) * static_cast<double>(p.n);
  if (rows.rows() == 0) return report;
  const bool every = samples == 0 || static_cast<double>(samples) >= elements;
  constexpr std::int64_t kSamplesAtOnce = 16;
  const std::int64_t items = every ? rows.blocks() * blocks_n : (samples + kSamplesAtOnce - 1) / kSamplesAtOnce;

  std::mutex mutex;
  parallel(items, thread_count(0, items), [&](auto& next, int) {
    Verifier verifier(p, matrices, arguments.groups, weights);
    VerifyReport own;
    for (std::int64_t item = next(); item >= 0; item = next()) {
      if (every) {
        const RowBlock block = rows.block(item / blocks_n);
        verifier.check_block(block.batch, block.row, block.row_end, item % blocks_n * block_columns, own);
        continue;
      }
      for (std::int64_t i = item * kSamplesAtOnce; i < std::min(samples, (item + 1) * kSamplesAtOnce); ++i) {
        const auto number = static_cast<std::uint64_t>(i) * 2;
        const RowBlock at = rows.row(draw(seed, number, rows.rows()));
        verifier.check_element({at.batch, at.row, draw(seed, number + 1, p.n)}, own);
      }
    }
    const std::lock_guard lock(mutex);
    merge(report, own);
  });
  return report;
}

std::string to_string(const VerifyReport& report) {
  const auto number = [](double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", value);
    return std::string(text);
  };
  std::string line = std::to_string(report.checked) + " elements checked: ";
  if (report.ok()) {
    line += "all within the bound";
  } else {
    line += std::to_string(report.wrong) + " outside the bound, " + std::to_string(report.not_a_number) + " not a number";
  }
  if (report.worst_row < 0) return line;
  return line + "; worst at batch " + std::to_string(report.worst_batch) + ", row " + std::to_string(report.worst_row) + ", column " +
         std::to_string(report.worst_column) + ": got " + number(report.worst_got) + ", reference " + number(report.worst_reference) +
         " (" + number(report.worst_ratio) + " of the bound)";
}

}  // namespace sluice
