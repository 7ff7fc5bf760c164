// kernel_list.def as compile-time values: for_each_kernel(f) calls f.operator()<config>() for every compiled kernel.
#pragma once

#include "sluice/kernel_config.hpp"

namespace sluice {

enum class LayoutSet { rc, all };

// A line's configuration for one type and the n-th layout of a set: rc, rr, cc, cr.
constexpr KernelConfig with_type_and_layout(KernelConfig config, DataType type, int layout_index) {
  config.type_ab = type;
  config.layout_a = layout_index < 2 ? Layout::row_major : Layout::column_major;
  config.layout_b = layout_index % 2 == 0 ? Layout::column_major : Layout::row_major;
  return config;
}

// One line of kernel_list.def: all its types and layouts.
template <LayoutSet set, KernelConfig config, class F>
constexpr void for_each_kernel_of_line(F&& f) {
  const auto each_layout = [&]<DataType type>() {
    f.template operator()<with_type_and_layout(config, type, 0)>();
    if constexpr (set == LayoutSet::all) {
      f.template operator()<with_type_and_layout(config, type, 1)>();
      f.template operator()<with_type_and_layout(config, type, 2)>();
      f.template operator()<with_type_and_layout(config, type, 3)>();
    }
  };
  each_layout.template operator()<DataType::bf16>();
  each_layout.template operator()<DataType::fp16>();
}

#define SLUICE_KERNEL_CONFIG(schedule_, order_, load_, tile_m_, tile_n_, tile_k_, cluster_m_, cluster_n_, ctas_per_sm_)                    \
  ::sluice::KernelConfig {                                                                                                                 \
    .schedule = ::sluice::KernelSchedule::schedule_, .order = ::sluice::OperandOrder::order_, .load = ::sluice::LoadPath::load_,           \
    .tile_m = tile_m_, .tile_n = tile_n_, .tile_k = tile_k_, .cluster_m = cluster_m_, .cluster_n = cluster_n_, .ctas_per_sm = ctas_per_sm_ \
  }

template <class F>
constexpr void for_each_kernel(F&& f) {
#define SLUICE_KERNEL(layouts, schedule, order, load, tile_m, tile_n, tile_k, cluster_m, cluster_n, ctas_per_sm) \
  for_each_kernel_of_line<LayoutSet::layouts,                                                                    \
                          SLUICE_KERNEL_CONFIG(schedule, order, load, tile_m, tile_n, tile_k, cluster_m, cluster_n, ctas_per_sm)>(f);
#include "core/kernel_list.def"
#undef SLUICE_KERNEL
}

}  // namespace sluice
