// The compiled histogram kernels, one by one, defined in the generated instance files.
#pragma once

#include <cstddef>
#include <utility>

#include "core/histogram_config.hpp"

namespace sluice {

struct HistogramParams;

// For the GPU, as cudaLaunchKernelExC takes them. The second clears the counts before another adds to them.
template <HistogramConfig config>
const void* histogram_kernel_entry();
const void* clear_counts_entry();

// For the emulator: what each thread runs.
using EmulatedHistogramKernel = void (*)(const HistogramParams& params);
template <HistogramConfig config>
EmulatedHistogramKernel emulated_histogram_kernel();
EmulatedHistogramKernel emulated_clear_counts();

// What entry.operator()<config>() gives for a configuration that is known at run time; null for one that is not listed.
template <class Entry>
auto find_histogram_kernel(const HistogramConfig& wanted, Entry entry) {
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    decltype(entry.template operator()<kListedHistogramKernels[0]>()) found = nullptr;
    ((wanted == kListedHistogramKernels[i] ? void(found = entry.template operator()<kListedHistogramKernels[i]>()) : void()), ...);
    return found;
  }
  (std::make_index_sequence<kListedHistogramKernels.size()>());
}

}  // namespace sluice
