// What instance files of kernels that are compiled a second time share (with a recorder, for general groups, for plain products): operands
// of one type, both with K contiguous. As kernel_instance.cuh has it for the first time.
#pragma once

#include "core/kernel_layout.hpp"
#include "core/kernel_line.hpp"

// clang-format off
#define SLUICE_OF_ONE_TYPE(type, ...) \
  ::sluice::with_types_and_layout(SLUICE_KERNEL_CONFIG(__VA_ARGS__), ::sluice::DataType::type, ::sluice::DataType::type, 0)

// entry<config>() is what the GPU starts, named `symbol`, emulated_entry<config>() what the emulator does: both call run<config>(params).
#ifdef __CUDACC__
#define SLUICE_SECOND_ENTRY(symbol, params_type, entry, emulated_entry, run, config)                                                  \
  extern "C" SLUICE_KERNEL_ENTRY(::sluice::threads_per_cta(config), (config).ctas_per_sm)                                             \
      symbol(SLUICE_KERNEL_PARAMETER ::sluice::params_type params) {                                                                  \
    ::sluice::run<config>(params);                                                                                                    \
  }                                                                                                                                   \
  template <>                                                                                                                         \
  const void* ::sluice::entry<config>() {                                                                                             \
    return reinterpret_cast<const void*>(&symbol);                                                                                    \
  }
#else
#define SLUICE_SECOND_ENTRY(symbol, params_type, entry, emulated_entry, run, config)                                                  \
  template <>                                                                                                                         \
  decltype(&::sluice::run<config>) (::sluice::emulated_entry<config>)() {                                                             \
    return &::sluice::run<config>;                                                                                                    \
  }
#endif

// A line of kernel_list.def by kind_INSTANCES(name, line without instances).
#define SLUICE_SECOND_LINE(kind, instances, schedule, order, load, tile_m, tile_n, tile_k, cluster_m, cluster_n, ctas_per_sm)          \
  kind##_##instances(schedule##_##order##_##load##_##tile_m##x##tile_n##x##tile_k##_c##cluster_m##x##cluster_n##_x##ctas_per_sm, schedule, \
                     order, load, tile_m, tile_n, tile_k, cluster_m, cluster_n, ctas_per_sm)
// clang-format on
