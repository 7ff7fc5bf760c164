#include "launch/bind.hpp"

#include <cstdint>

#include "core/groups.hpp"
#include "core/kernel_layout.hpp"
#include "core/launched_clusters.hpp"
#include "core/leaves_first.hpp"
#include "core/load_boxes.hpp"
#include "launch/bind_groups.hpp"
#include "launch/bind_packed.hpp"
#include "launch/bind_pieces.hpp"
#include "launch/bind_scales.hpp"
#include "launch/check_pieces.hpp"

namespace sluice {
namespace {

// One operand as it lies in memory.
struct OperandView {
  const char* name;
  const void* data;
  FetchedOperand fetched;
  bool constant;
  std::int64_t matrices, leading_elems, batch_stride_elems;
  bool leaves_first;    // leaves L2 first
  bool through_engine;  // and not by threads
};

Status set_map(EncodeTensorMap encode, const GlobalTensor& tensor, const BoxShape& box, arch::TensorMap& out) {
  Result<arch::TensorMap> map = encode(tensor, box);
  if (!map) return map.error();
  out = *map;
  return Nothing{};
}

Status fill_operand(const Plan& plan, const OperandView& view, EncodeTensorMap encode, OperandParams& params) {
  const GemmProblem& p = plan.problem;
  const FetchedOperand& fetched = view.fetched;
  const int row_elems = kSwizzleBytes / size_bytes(p.type_a);
  const LoadBoxes boxes = has_rings(plan.kernel) ? LoadBoxes{.vectors = fetched.tile_vectors}  // what is not there is multiplied, too
                                                 : load_boxes(fetched, plan.kernel.tile_k, row_elems, p.k, view.matrices);
  params.policy = view.leaves_first ? arch::CachePolicy::evict_first : arch::CachePolicy::evict_normal;
  params.data = view.data;
  params.leading_elems = view.leading_elems;
  params.batch_stride_elems = view.batch_stride_elems;
  params.vectors = static_cast<std::int32_t>(fetched.vectors);
  params.by_blocks = fetched.block_rows > 0;
  params.ends_early = boxes.ends_early;
  params.whole_tiles = boxes.whole_tiles;
  params.clips_k = is_grouped_along_k(p) && !fetched.k_major;
  params.constant = view.constant;
  params.stage_bytes =
      (fetched.k_major ? boxes.vectors * fetched.sharers : fetched.tile_vectors) * plan.kernel.tile_k * size_bytes(p.type_a);
  params.batch_step = view.matrices == 1 || view.batch_stride_elems == 0 ? 0 : 1;
  if (!view.through_engine || plan.scheduler.k_tiles == 0) return Nothing{};

  const GlobalTensor matrices{.name = view.name,
                              .data = view.data,
                              .type = p.type_a,
                              .inner = fetched.k_major ? p.k : fetched.vectors,
                              .outer = fetched.k_major ? fetched.vectors : p.k,
                              .matrices = view.matrices,
                              .leading_elems = view.leading_elems,
                              .matrix_stride_elems = view.batch_stride_elems};
  GlobalTensor tensor = matrices;
  BoxShape box{.inner = row_elems, .outer = boxes.vectors};
  if (boxes.whole_tiles) {
    box.matrices = boxes.slabs;
    tensor.inner = row_elems;
    tensor.matrices = p.k / row_elems;
    tensor.matrix_stride_elems = row_elems;
  }
  if (params.clips_k) tensor = clipping_k(p, tensor, box.outer);
  if (Status s = set_map(encode, tensor, box, params.map); !s) return s;
  params.map_last = params.map;
  return boxes.last > 0 ? set_map(encode, matrices, {.inner = row_elems, .outer = boxes.last}, params.map_last) : Nothing{};
}

Status fill_mainloop(const Plan& plan, const GemmArguments& arguments, EncodeTensorMap encode, MainloopParams& params) {
  const GemmProblem& p = plan.problem;
  const KernelConfig& kernel = plan.kernel;
  const OperandView a{.name = "A",
                      .data = arguments.a,
                      .fetched = fetched_a(p, kernel),
                      .constant = p.constant_a,
                      .matrices = row_matrices(p),
                      .leading_elems = p.lda,
                      .batch_stride_elems = p.batch_stride_a,
                      .leaves_first = a_leaves_first(plan),
                      .through_engine = kernel.load == LoadPath::tma && !streams(kernel)};
  const OperandView b{.name = "B",
                      .data = arguments.b,
                      .fetched = fetched_b(p, kernel),
                      .constant = p.constant_b,
                      .matrices = p.batch,
                      .leading_elems = p.ldb,
                      .batch_stride_elems = p.batch_stride_b,
                      .leaves_first = b_leaves_first(plan),
                      .through_engine = kernel.load == LoadPath::tma};
  params.k = static_cast<std::int32_t>(p.k);
  if (dequantises(kernel))
    bind_packed(plan, arguments, params);
  else if (Status s = fill_operand(plan, swapped(kernel) ? b : a, encode, params.p); !s)
    return s;
  return fill_operand(plan, swapped(kernel) ? a : b, encode, params.q);
}

bool rows_aligned(const void* data, std::int64_t leading_elems, std::int64_t batch_stride_elems, std::int64_t bytes, int element_bytes) {
  return reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(bytes) == 0 && leading_elems * element_bytes % bytes == 0 &&
         batch_stride_elems * element_bytes % bytes == 0;
}

// The copy engine moves what registers can round by themselves to places it can address. It clips a box to whole packets of 16 bytes: a row
// that ends inside one would have the bytes behind its end overwritten (seen on an H200, November 2026).
StorePath store_path(const KernelConfig& kernel, const GemmProblem& p, const GemmArguments& arguments) {
  constexpr int kTmaAlignmentBytes = 16;
  const bool plain = p.epilogue.beta == 0.0f && p.epilogue.bias == Bias::none && p.epilogue.activation == Activation::none;
  const bool whole_packets = p.n * size_bytes(p.type_d) % kTmaAlignmentBytes == 0;
  const bool addressable = whole_packets && rows_aligned(arguments.d, p.ldd, p.batch_stride_d, kTmaAlignmentBytes, size_bytes(p.type_d));
  if (streams(kernel)) return plain && p.type_d == p.type_a ? StorePath::rounded : StorePath::elementwise;
  return plain && addressable && can_clip_rows(p) && !is_fp8(p.type_d) ? StorePath::copy_engine : StorePath::elementwise;
}

// The map of D for boxes of `width` columns of Q.
Status fill_store_map(const Plan& plan, const GemmArguments& arguments, int width, EncodeTensorMap encode, arch::TensorMap& out) {
  const GemmProblem& p = plan.problem;
  GlobalTensor tensor{.name = "D",
                      .data = arguments.d,
                      .type = p.type_d,
                      .inner = p.n,
                      .outer = p.m,
                      .matrices = p.batch,
                      .leading_elems = p.ldd,
                      .matrix_stride_elems = p.batch_stride_d};
  const BoxShape box{.inner = store_box_columns(plan.kernel, width, size_bytes(p.type_d)), .outer = store_box_rows(plan.kernel, width)};
  if (is_grouped(p)) tensor = clipping_rows(p, tensor, box.outer);
  return set_map(encode, tensor, box, out);
}

Status fill_epilogue(const Plan& plan, const GemmArguments& arguments, EncodeTensorMap encode, EpilogueParams& params) {
  const GemmProblem& p = plan.problem;
  const int bytes = size_bytes(p.type_d), four = 4 * bytes;
  params.c = arguments.c;
  params.d = arguments.d;
  params.bias = arguments.bias;
  params.ldc_elems = p.ldc;
  params.ldd_elems = p.ldd;
  params.batch_stride_c_elems = p.batch_stride_c;
  params.batch_stride_d_elems = p.batch_stride_d;
  params.m = static_cast<std::int32_t>(p.m);
  params.n = static_cast<std::int32_t>(p.n);
  params.alpha = p.epilogue.alpha;
  params.beta = p.epilogue.beta;
  params.type_d = p.type_d;
  params.bias_kind = p.epilogue.bias;
  params.activation = p.epilogue.activation;
  params.path = store_path(plan.kernel, p, arguments);
  params.aligned_c = rows_aligned(arguments.c, p.ldc, p.batch_stride_c, four, bytes);
  params.aligned_d = rows_aligned(arguments.d, p.ldd, p.batch_stride_d, four, bytes);
  const int of_bias = size_bytes(bias_type(p.type_d));
  params.aligned_bias = rows_aligned(arguments.bias, p.epilogue.bias == Bias::per_group_column ? p.n : 0, 0, 4 * of_bias, of_bias);
  if (params.path != StorePath::copy_engine) return Nothing{};

  const StoreChunks chunks = store_chunks(plan.kernel, bytes);
  if (chunks.count > 0)
    if (Status s = fill_store_map(plan, arguments, chunks.width, encode, params.map_d); !s) return s;
  return chunks.rest > 0 ? fill_store_map(plan, arguments, chunks.rest_box, encode, params.map_d_rest) : Nothing{};
}

}  // namespace

Result<GemmParams> bind(const Plan& plan, const GemmArguments& arguments, void* workspace, EncodeTensorMap encode) {
  if (Status s = check_pieces(plan); !s) return s.error();
  GemmParams params{
      .reduction = bind_pieces(plan, workspace), .scheduler = plan.scheduler, .schedule = Schedule<Reciprocal>(plan.scheduler)};
  params.early_successor = successor_may_move_in(plan);
  if (Status s = fill_mainloop(plan, arguments, encode, params.mainloop); !s) return s.error();
  if (Status s = fill_epilogue(plan, arguments, encode, params.epilogue); !s) return s.error();
  bind_scales(plan.problem, arguments, swapped(plan.kernel), params);
  bind_groups(plan.problem, arguments, params);
  return params;
}

}  // namespace sluice
