// Products of many sizes in one launch: docs/grouped.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice {

// How the matrices of a problem's `batch` differ. In all but `none` they are called groups, and their sizes are read on the device, when
// the kernel runs, from GemmArguments::groups: no copy to the host, no wait, and a graph may be replayed with other sizes.
//   none    they do not: a batch
//   ragged  the rows of all groups lie one after another in A and D (and C), m of them in all: group g has rows [groups[g], groups[g + 1]),
//           which are multiplied with B[g]. batch + 1 ascending numbers. No group need be padded; rows of no group are not written.
//   masked  A[g] and D[g] have m rows, of which the first groups[g] count. batch numbers. The other rows are not written.
//   along_k the elements of K of all groups lie one after another in A and B, k of them in all: D[g] is the product of the columns
//           [groups[g], groups[g + 1]) of A and these rows of B, as gradients of weights are. batch + 1 ascending numbers. D[g] is written
//           for a group without any, too: its product is 0. Numbers of FP8 operands are multiples of 128, which the caller promises: on
//           the device any other counts as the multiple below it, and where they are in host memory it is refused.
//   general every group is a product of its own: sizes, leading dimensions and pointers are those of GemmArguments::group_arguments
//           (group_arguments.hpp), batch of them.
// Sizes that lie outside of the matrices are taken to end with them.
//
// In GemmProblem: ragged, D has no batch stride, and neither have A, C and the scales of A and D (A's cannot be in blocks of 128 rows,
// since groups begin anywhere); a bias of each row has m elements. masked: m is what there is room for in a group. along_k: k is that of
// all groups; A, B and their scales have no batch stride. Operands of 16 bits are aligned to 16 bytes, A column-major and B row-major
// (groups then begin anywhere); of FP8, groups begin and end at multiples of 128, as k does. general: m, n and k are the largest of any
// group; strides, those of scales too, are left kPacked, operands are bf16, fp16 or FP8 with K contiguous in both, and start at multiples
// of 16 bytes; D is not FP8.
//
// What may be said of rows, for the planner alone, whichever they turn out to be: expected_rows is about how many a group has (unless said
// m / batch if ragged, m if masked or general); most_rows, of ragged and masked ones, how many none has more of, as far as is known (the
// capacity of experts). A group that has more only takes longer.
enum class Grouping : std::uint8_t { none, ragged, masked, along_k, general };

const char* to_string(Grouping grouping);  // "none", "ragged", "masked", "along-k", "general"
std::optional<Grouping> parse_grouping(std::string_view text);

}  // namespace sluice
