// kernel_list.def as compile-time values: for_each_kernel(f) calls f.operator()<config>() for every compiled kernel.
#pragma once

#include "sluice/kernel_config.hpp"

namespace sluice {

enum class LayoutSet { rc, all };

// The n-th member of a layout set: rc, rr, cc, cr.
constexpr int layout_count(LayoutSet set) { return set == LayoutSet::rc ? 1 : 4; }
constexpr KernelConfig with_layout(KernelConfig config, int index) {
  config.layout_a = index < 2 ? Layout::row_major : Layout::column_major;
  config.layout_b = index % 2 == 0 ? Layout::column_major : Layout::row_major;
  return config;
}

// One line of kernel_list.def: all its types and layouts.
template <LayoutSet set, KernelConfig config, class F>
constexpr void for_each_kernel_of_line(F&& f) {
  constexpr auto with_type = [](DataType type) {
    KernelConfig typed = config;
    typed.type_ab = type;
    return typed;
  };
  const auto each_layout = [&]<DataType type>() {
    f.template operator()<with_layout(with_type(type), 0)>();
    if constexpr (set == LayoutSet::all) {
      f.template operator()<with_layout(with_type(type), 1)>();
      f.template operator()<with_layout(with_type(type), 2)>();
      f.template operator()<with_layout(with_type(type), 3)>();
    }
  };
  each_layout.template operator()<DataType::bf16>();
  each_layout.template operator()<DataType::fp16>();
}

#define SLUICE_KERNEL_CONFIG(schedule_, order_, load_, tile_m_, tile_n_, cluster_m_, cluster_n_)                                \
  ::sluice::KernelConfig {                                                                                                      \
    .schedule = ::sluice::KernelSchedule::schedule_, .order = ::sluice::OperandOrder::order_, .load = ::sluice::LoadPath::load_, \
    .tile_m = tile_m_, .tile_n = tile_n_, .cluster_m = cluster_m_, .cluster_n = cluster_n_                                      \
  }

template <class F>
constexpr void for_each_kernel(F&& f) {
#define SLUICE_KERNEL(layouts, schedule, order, load, tile_m, tile_n, cluster_m, cluster_n) \
  for_each_kernel_of_line<LayoutSet::layouts,                                               \
                          SLUICE_KERNEL_CONFIG(schedule, order, load, tile_m, tile_n, cluster_m, cluster_n)>(f);
#include "core/kernel_list.def"
#undef SLUICE_KERNEL
}

}  // namespace sluice
