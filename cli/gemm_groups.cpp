#include "gemm_groups.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>
#include <string_view>
#include <tuple>

#include <fmt/core.h>

#include "choices.hpp"
#include "npy.hpp"

namespace sluice::cli {
namespace {

using Numbers = std::vector<std::int64_t>;

Error wrong(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }

Result<Numbers> parse_list(const std::string& text) {
  Numbers numbers;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string_view word(text.data() + at, end - at);
    std::int64_t number = 0;
    const auto [stop, problem] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (problem != std::errc{} || stop != word.data() + word.size())
      return wrong(fmt::format("--groups '{}': '{}' is no number; pass the rows of each group as 5,0,12, or a .npy file", text, word));
    numbers.push_back(number);
    at = end + 1;
  }
  return numbers;
}

// What there is of each group, from where each begins and the last ends.
Result<Numbers> sizes_between(const Numbers& offsets, const std::string& whence) {
  if (offsets.empty()) return wrong(fmt::format("{}: is empty; ragged groups take one number more than there are groups", whence));
  if (offsets.front() < 0) return wrong(fmt::format("{}: offset 0 is {}; rows are counted from 0", whence, offsets.front()));
  Numbers sizes;
  for (std::size_t g = 1; g < offsets.size(); ++g) {
    if (offsets[g] < offsets[g - 1])
      return wrong(fmt::format(
          "{}: offset {} is {}, less than the {} before it; a file for ragged groups holds where each begins and the last ends: save "
          "numpy.concatenate([[0], numpy.cumsum(sizes)])",
          whence, g, offsets[g], offsets[g - 1]));
    sizes.push_back(offsets[g] - offsets[g - 1]);
  }
  return sizes;
}

// A and B are one matrix each, of which groups have columns and rows.
Status check_groups_along_k(const Groups& groups, const std::string& path_a, const Matrices& a, const std::string& path_b,
                            const Matrices& b) {
  for (const auto& [operand, path, matrices] : {std::tuple{"A", &path_a, &a}, {"B", &path_b, &b}})
    if (matrices->batched)
      return wrong(
          fmt::format("{} ({}) holds {} matrices; what groups along k have lies one after another in a single A, [m, k], and B, "
                      "[k, n]: reshape them",
                      operand, *path, matrices->batch));
  if (groups.numbers.back() > a.columns)
    return wrong(
        fmt::format("{}: the groups end at element {} of K, but A ({}) has {}", groups.whence, groups.numbers.back(), path_a, a.columns));
  return Nothing{};
}

std::string offsets_hint(const Groups& groups) {
  return groups.grouping == Grouping::ragged && groups.whence != "--groups"
             ? "; a file for ragged groups holds one number more than there are groups, where each begins and the last ends"
             : "";
}

}  // namespace

const char* Groups::unit() const { return grouping == Grouping::along_k ? "elements of K" : "rows"; }

std::int64_t Groups::size() const {
  if (numbers.empty()) return 0;
  if (grouping != Grouping::masked) return numbers.back() - numbers.front();
  return std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0});
}

std::int64_t row_matrices(const GemmProblem& problem) { return problem.grouping == Grouping::ragged ? 1 : problem.batch; }

Result<Groups> read_groups(const WantedGroups& wanted) {
  const Result<Grouping> grouping = choose("--grouping", wanted.grouping, &parse_grouping, kGroupingsOfFiles);
  if (!grouping) return grouping.error();
  if (*grouping == Grouping::general)
    return wrong(
        fmt::format("--grouping general has matrices of many sizes, for which this command has no files; choose one of {}, or "
                    "call run() with GroupArguments",
                    kGroupingsOfFiles));
  Groups groups{.grouping = *grouping};
  if (*grouping == Grouping::none) {
    if (!wanted.sizes.empty())
      return wrong(
          "--groups are sizes of groups; pass --grouping ragged (their rows follow one another in A), masked (each has room of "
          "its own) or along-k, too");
    if (Status s = check_rows_flags(wanted.rows, *grouping, "ragged or masked"); !s) return s.error();
    return groups;
  }
  if (wanted.sizes.empty())
    return wrong(
        fmt::format("--grouping {} needs the sizes; pass --groups with what each group has of rows, or of K (5,0,12), or a .npy file",
                    wanted.grouping));
  const bool offsets = *grouping != Grouping::masked, file = wanted.sizes.ends_with(".npy");
  groups.whence = file ? wanted.sizes : "--groups";
  const Result<Numbers> given = file ? read_npy_integers(wanted.sizes) : parse_list(wanted.sizes);
  if (!given) return given.error();
  const Result<Numbers> sizes = file && offsets ? sizes_between(*given, groups.whence) : *given;
  if (!sizes) return sizes.error();
  groups.count = static_cast<std::int64_t>(sizes->size());
  std::int64_t end = file && offsets ? given->front() : 0;
  if (offsets) groups.numbers.push_back(static_cast<std::int32_t>(std::min<std::int64_t>(end, std::numeric_limits<std::int32_t>::max())));
  for (std::size_t g = 0; g < sizes->size(); ++g) {
    const std::int64_t size = (*sizes)[g];
    end = offsets ? end + size : size;
    if (size < 0 || size > std::numeric_limits<std::int32_t>::max() || end > std::numeric_limits<std::int32_t>::max())
      return wrong(fmt::format("{}: group {} has {} {}; a group has 0 or more, and all of them fewer than 2^31", groups.whence, g, size,
                               groups.unit()));
    groups.numbers.push_back(static_cast<std::int32_t>(end));
  }
  return groups;
}

Status check_groups(const Groups& groups, const std::string& path_a, const Matrices& a, const std::string& path_b, const Matrices& b) {
  if (groups.grouping == Grouping::none) return Nothing{};
  if (groups.grouping == Grouping::along_k) return check_groups_along_k(groups, path_a, a, path_b, b);
  const bool ragged = groups.grouping == Grouping::ragged;
  if (b.batch != groups.count)
    return wrong(fmt::format("{} says {} groups, but B ({}) holds {} matri{}; B is one [k, n] for each group{}", groups.whence,
                             groups.count, path_b, b.batch, b.batch == 1 ? "x" : "ces", offsets_hint(groups)));
  if (ragged && a.batched)
    return wrong(
        fmt::format("A ({}) holds {} matrices; the rows of ragged groups lie one after another in a single [m, k]: reshape A, or "
                    "pass --grouping masked",
                    path_a, a.batch));
  if (!ragged && a.batch != groups.count)
    return wrong(fmt::format("{} says {} groups, but A ({}) holds {} matri{}; masked groups have one [m, k] each{}", groups.whence,
                             groups.count, path_a, a.batch, a.batch == 1 ? "x" : "ces",
                             a.batched ? "" : ": if their rows follow one another, pass --grouping ragged"));
  if (ragged && groups.numbers.back() > a.rows)
    return wrong(fmt::format("{}: the groups end at row {}, but A ({}) has {}", groups.whence, groups.numbers.back(), path_a, a.rows));
  for (std::size_t g = 0; !ragged && g < groups.numbers.size(); ++g)
    if (groups.numbers[g] > a.rows)
      return wrong(
          fmt::format("{}: group {} has {} rows, but A ({}) has room for {} in each", groups.whence, g, groups.numbers[g], path_a, a.rows));
  return Nothing{};
}

Status check_fp8_groups(const Groups& groups, DataType type) {
  constexpr std::int32_t kBlock = 128;
  if (groups.grouping != Grouping::along_k) return Nothing{};
  for (std::size_t g = 0; g < groups.numbers.size(); ++g)
    if (groups.numbers[g] % kBlock != 0)
      return wrong(
          fmt::format("{}: {} at element {} of K; groups along k of {} begin and end at multiples of 128, where their scales do: fill them "
                      "up with zeros, here to {}",
                      groups.whence, g == 0 ? "the first group begins" : fmt::format("group {} ends", g - 1), groups.numbers[g],
                      sluice::to_string(type), (groups.numbers[g] / kBlock + 1) * kBlock));
  return Nothing{};
}

std::string line_about(const Groups& groups) {
  std::int32_t least = std::numeric_limits<std::int32_t>::max(), most = 0;
  for (std::size_t g = 0; g < static_cast<std::size_t>(groups.count); ++g) {
    const std::int32_t size = groups.grouping != Grouping::masked ? groups.numbers[g + 1] - groups.numbers[g] : groups.numbers[g];
    least = std::min(least, size);
    most = std::max(most, size);
  }
  return fmt::format("{} {} groups of {} to {} {}, {} in all", groups.count, sluice::to_string(groups.grouping), std::min(least, most),
                     most, groups.unit(), groups.size());
}

}  // namespace sluice::cli
