#include "launch/bind_groups.hpp"

#include <cstdint>

#include "core/groups.hpp"

namespace sluice {
namespace {

// Rows of D from the first of one matrix to the first of the next: all of them are one matrix to the copy engine.
std::int64_t batch_rows(const GemmProblem& p) { return is_grouped(p) ? p.batch_stride_d / p.ldd : 0; }
// Of all matrices, from the first row to the last.
std::int64_t spanned_rows(const GemmProblem& p) { return p.m + (row_matrices(p) - 1) * batch_rows(p); }

// `rows` of a tensor, for boxes that are clipped.
GlobalTensor clipping(GlobalTensor tensor, std::int64_t rows, int box_rows) {
  const auto above = static_cast<std::uintptr_t>(box_rows * tensor.leading_elems * size_bytes(tensor.type));
  // An address before the first byte: a number, for no pointer can be moved there. NOLINTNEXTLINE(performance-no-int-to-ptr)
  tensor.data = reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(tensor.data) - above);
  tensor.outer = box_rows;
  tensor.matrices = rows + box_rows;
  tensor.matrix_stride_elems = tensor.leading_elems;
  return tensor;
}

}  // namespace

bool can_clip_rows(const GemmProblem& p) {
  constexpr std::int64_t kMostRows = std::int64_t{1} << 30;  // coordinates are 32-bit, and a box goes beyond
  return !is_grouped(p) || (p.batch_stride_d % p.ldd == 0 && spanned_rows(p) <= kMostRows);
}

GlobalTensor clipping_rows(const GemmProblem& p, GlobalTensor d, int box_rows) { return clipping(d, spanned_rows(p), box_rows); }
GlobalTensor clipping_k(const GemmProblem& p, GlobalTensor operand, int box_rows) { return clipping(operand, p.k, box_rows); }

void bind_groups(const GemmProblem& p, const GemmArguments& arguments, GemmParams& params) {
  params.groups = {p.grouping, static_cast<std::int32_t>(p.batch), static_cast<std::int32_t>(is_grouped_along_k(p) ? p.k : p.m),
                   arguments.groups};
  params.epilogue.clips_rows = is_grouped(p);
  params.epilogue.batch_rows = static_cast<std::int32_t>(batch_rows(p));
}

}  // namespace sluice
