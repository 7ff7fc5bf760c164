// kernel_list.def as compile-time values: for_each_kernel(f) calls f.operator()<config>() for every compiled kernel.
#pragma once

#include "core/kernel_line.hpp"

namespace sluice {

// What a line of the list is compiled for: see kernel_list.def.
enum class InstanceSet { bf16, rc, all, fp8, fp8_mixed, w4, w4a8 };

// One line of kernel_list.def: all its types and layouts.
template <InstanceSet set, KernelConfig config, class F>
constexpr void for_each_kernel_of_line(F&& f) {
  using enum DataType;
  const auto each_layout = [&]<DataType type>() {
    f.template operator()<with_types_and_layout(config, type, type, 0)>();
    if constexpr (set == InstanceSet::all) {
      f.template operator()<with_types_and_layout(config, type, type, 1)>();
      f.template operator()<with_types_and_layout(config, type, type, 2)>();
      f.template operator()<with_types_and_layout(config, type, type, 3)>();
    }
  };
  if constexpr (set == InstanceSet::bf16) {
    each_layout.template operator()<bf16>();
  } else if constexpr (set == InstanceSet::rc || set == InstanceSet::all) {
    each_layout.template operator()<bf16>();
    each_layout.template operator()<fp16>();
  } else if constexpr (set == InstanceSet::w4) {
    f.template operator()<with_types_and_layout(config, bf16, int4, 0)>();
    f.template operator()<with_types_and_layout(config, fp16, int4, 0)>();
  } else if constexpr (set == InstanceSet::w4a8) {
    f.template operator()<with_types_and_layout(config, e4m3, int4, 0)>();
  } else {
    f.template operator()<with_types_and_layout(config, e4m3, e4m3, 0)>();
    if constexpr (set == InstanceSet::fp8_mixed) {
      f.template operator()<with_types_and_layout(config, e4m3, e5m2, 0)>();
      f.template operator()<with_types_and_layout(config, e5m2, e4m3, 0)>();
      f.template operator()<with_types_and_layout(config, e5m2, e5m2, 0)>();
    }
  }
}

#define SLUICE_EACH_OF_LINE(instances, schedule, order, load, tile_m, tile_n, tile_k, cluster_m, cluster_n, ctas_per_sm) \
  for_each_kernel_of_line<InstanceSet::instances,                                                                        \
                          SLUICE_KERNEL_CONFIG(schedule, order, load, tile_m, tile_n, tile_k, cluster_m, cluster_n, ctas_per_sm)>(f);

template <class F>
constexpr void for_each_kernel(F&& f) {
#define SLUICE_KERNEL(...) SLUICE_EACH_OF_LINE(__VA_ARGS__)
#include "core/kernel_list.def"
}

// The same of those that are compiled with a recorder, too.
template <class F>
constexpr void for_each_traced_kernel(F&& f) {
#define SLUICE_TRACED_KERNEL(...) SLUICE_EACH_OF_LINE(__VA_ARGS__)
#include "core/kernel_list.def"
}

// And of those that are compiled for general groups, too.
template <class F>
constexpr void for_each_general_kernel(F&& f) {
#define SLUICE_GENERAL_KERNEL(...) SLUICE_EACH_OF_LINE(__VA_ARGS__)
#include "core/kernel_list.def"
}

// And of the short ones: each with its scope.
template <class F>
constexpr void for_each_short_kernel(F&& of_each) {
#define SLUICE_SHORT_KERNEL(scope, ...)                                                                                   \
  {                                                                                                                       \
    const auto f = [&]<KernelConfig listed>() { of_each.template operator()<with_scope(listed, KernelScope::scope)>(); }; \
    SLUICE_EACH_OF_LINE(__VA_ARGS__)                                                                                      \
  }
#include "core/kernel_list.def"
}

#undef SLUICE_EACH_OF_LINE

}  // namespace sluice
