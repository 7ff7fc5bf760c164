// Before the product of general groups: a CTA for each group reads what the group is, makes the tensor maps of its matrices, and leaves
// them in the workspace with its sizes and what the epilogue must know. A warp for each map.
#pragma once

#include "arch/arch.cuh"
#include "kernel/general/general_params.cuh"

namespace sluice {

static_assert(kPrepareSharedBytes == kPrepareThreads / 32 * sizeof(arch::TensorMap));

// A matrix as the copy engine sees it: `outer` rows or columns of `inner` contiguous elements.
struct MatrixOfGroup {
  const void* data;
  std::int32_t inner;
  std::int32_t outer;
  std::int64_t pitch_bytes;
};

// By a whole warp, in its part of shared memory.
SLUICE_DEVICE void make_map(const arch::TensorMap& from, const MatrixOfGroup& matrix, arch::SharedAddress shared, arch::TensorMap* to) {
  const int lane = arch::lane();
  if (lane < 8) {
    const std::uint64_t low = from.opaque[2 * lane], high = from.opaque[2 * lane + 1];
    arch::store_shared(shared + static_cast<std::uint32_t>(16 * lane),
                       {static_cast<std::uint32_t>(low), static_cast<std::uint32_t>(low >> 32), static_cast<std::uint32_t>(high),
                        static_cast<std::uint32_t>(high >> 32)});
  }
  arch::sync_warp();
  if (lane == 0) {
    arch::replace_address(shared, matrix.data);
    arch::replace_extent<0>(shared, static_cast<std::uint32_t>(matrix.inner));
    arch::replace_extent<1>(shared, static_cast<std::uint32_t>(matrix.outer));
    arch::replace_stride<1>(shared, static_cast<std::uint64_t>(matrix.pitch_bytes));
    arch::replace_stride<2>(shared, static_cast<std::uint64_t>(matrix.pitch_bytes));  // of a third direction that is 1 long
  }
  arch::sync_warp();
  arch::publish_tensor_map(to, shared);
}

// `bytes` is a power of two, though the compiler cannot know.
SLUICE_DEVICE bool starts_at_multiples(const void* data, std::int64_t pitch_bytes, int bytes) {
  const std::uint64_t both = reinterpret_cast<std::uintptr_t>(data) | static_cast<std::uint64_t>(pitch_bytes);
  return (both & static_cast<std::uint64_t>(bytes - 1)) == 0;
}

// The copy engine stores D where it stores that of the largest group, if it can address this one (launch/bind.cpp).
SLUICE_DEVICE StorePath store_path_of_group(const GeneralGemmParams& params, const GroupArguments& group) {
  constexpr int kPacketBytes = 16;
  const std::int64_t bytes = params.general.result_bytes;
  const bool addressable = group.n * bytes % kPacketBytes == 0 && starts_at_multiples(group.d, group.ldd * bytes, kPacketBytes);
  return addressable ? params.epilogue.path : StorePath::elementwise;
}

SLUICE_DEVICE void write_epilogue(const GeneralGemmParams& params, const GroupArguments& group, EpilogueParams& to) {
  const EpilogueParams& common = params.epilogue;
  const int bytes = params.general.result_bytes, four = 4 * bytes;
  arch::store_global(&to.c, group.c);
  arch::store_global(&to.d, group.d);
  arch::store_global(&to.bias, group.bias);
  arch::store_global(&to.ldc_elems, group.ldc);
  arch::store_global(&to.ldd_elems, group.ldd);
  arch::store_global(&to.batch_stride_c_elems, std::int64_t{0});
  arch::store_global(&to.batch_stride_d_elems, std::int64_t{0});
  arch::store_global(&to.m, group.m);
  arch::store_global(&to.n, group.n);
  arch::store_global(&to.alpha, common.alpha);
  arch::store_global(&to.beta, common.beta);
  arch::store_global(&to.type_d, common.type_d);
  arch::store_global(&to.bias_kind, common.bias_kind);
  arch::store_global(&to.activation, common.activation);
  arch::store_global(&to.path, store_path_of_group(params, group));
  arch::store_global(&to.clips_rows, false);  // the map ends with the group
  arch::store_global(&to.batch_rows, 0);
  arch::store_global(&to.aligned_c, starts_at_multiples(group.c, group.ldc * bytes, four));
  arch::store_global(&to.aligned_d, starts_at_multiples(group.d, group.ldd * bytes, four));
  arch::store_global(&to.aligned_bias, starts_at_multiples(group.bias, 0, four));
  arch::store_global(&to.scale_d, ResultScaleParams{});
}

SLUICE_DEVICE ScaleParams scales_of_group(const float* data, const ScaleForm& form, int vectors, int k, std::int64_t leading) {
  // A group without K need not have any; its sums are 0, and want none.
  if (k == 0) return {};
  return scales_of(data, form.scaling, scale_strides_of_group(form, vectors, k, leading), vectors, false);
}

SLUICE_DEVICE void write_scales(const GeneralGroups& general, const GroupArguments& group, PreparedGroup& to) {
  arch::store_global(general.swapped ? &to.scale_q : &to.scale_p,
                     scales_of_group(group.scale_a, general.scales_a, group.m, group.k, group.ld_scale_a));
  arch::store_global(general.swapped ? &to.scale_p : &to.scale_q,
                     scales_of_group(group.scale_b, general.scales_b, group.n, group.k, group.ld_scale_b));
}

// The maps of one group, one by each warp. Where nothing is read there is none: a group without K has no operands.
SLUICE_DEVICE void make_map_of_warp(const GeneralGemmParams& params, const GroupArguments& group, PreparedGroup& to) {
  const GeneralGroups& general = params.general;
  const int warp = arch::warp_in_cta();
  const arch::SharedAddress shared =
      arch::shared_address(arch::dynamic_shared_memory()) + static_cast<std::uint32_t>(warp) * std::uint32_t{sizeof(arch::TensorMap)};
  if (warp < 2) {
    const bool of_a = (warp == 0) != general.swapped;
    const MatrixOfGroup operand{of_a ? group.a : group.b, group.k, of_a ? group.m : group.n,
                                (of_a ? group.lda : group.ldb) * general.operand_bytes};
    if (group.k > 0) make_map(warp == 0 ? params.mainloop.p.map : params.mainloop.q.map, operand, shared, warp == 0 ? &to.p : &to.q);
  } else if (group.m > 0 && store_path_of_group(params, group) == StorePath::copy_engine) {
    const MatrixOfGroup d{group.d, group.n, group.m, group.ldd * general.result_bytes};
    if (warp == 2 && general.stores_chunks) make_map(params.epilogue.map_d, d, shared, &to.epilogue.map_d);
    if (warp == 3 && general.stores_rest) make_map(params.epilogue.map_d_rest, d, shared, &to.epilogue.map_d_rest);
  }
}

SLUICE_DEVICE void run_prepare_groups_kernel(const GeneralGemmParams& params) {
  const GeneralGroups& general = params.general;
  const int number = arch::cta_in_grid();
  arch::wait_for_predecessor();
  // Not before: what the product before this one has of the workspace in an SM's L1 must be gone when its successor's CTAs come.
  arch::allow_successor();
  const GroupArguments group = within(general.limits, arch::load_global(general.arguments + number));
  PreparedGroup& prepared = general.prepared[number];
  make_map_of_warp(params, group, prepared);
  if (arch::warp_in_cta() != 0 || arch::lane() != 0) return;
  arch::store_global(general.sizes + number, with_tiles(params.scheduler, general.tile, GroupSizes{group.m, group.n, group.k}));
  write_epilogue(params, group, prepared.epilogue);
  write_scales(general, group, prepared);
}

}  // namespace sluice
