// What a line of core/kernel_list.def says of one kernel. Apart from the list, so that a new line has only its own kernels compiled.
#pragma once

#include "sluice/kernel_config.hpp"

namespace sluice {

// A line's configuration for its types and the n-th layout: rc, rr, cc, cr.
constexpr KernelConfig with_types_and_layout(KernelConfig config, DataType type_a, DataType type_b, int layout_index) {
  config.type_a = type_a;
  config.type_b = type_b;
  config.layout_a = layout_index < 2 ? Layout::row_major : Layout::column_major;
  config.layout_b = layout_index % 2 == 0 ? Layout::column_major : Layout::row_major;
  return config;
}

constexpr KernelConfig with_scope(KernelConfig config, KernelScope scope) {
  config.scope = scope;
  return config;
}

#define SLUICE_KERNEL_CONFIG(schedule_, order_, load_, tile_m_, tile_n_, tile_k_, cluster_m_, cluster_n_, ctas_per_sm_)                    \
  ::sluice::KernelConfig {                                                                                                                 \
    .schedule = ::sluice::KernelSchedule::schedule_, .order = ::sluice::OperandOrder::order_, .load = ::sluice::LoadPath::load_,           \
    .tile_m = tile_m_, .tile_n = tile_n_, .tile_k = tile_k_, .cluster_m = cluster_m_, .cluster_n = cluster_n_, .ctas_per_sm = ctas_per_sm_ \
  }

}  // namespace sluice
