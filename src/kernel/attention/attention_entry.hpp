// The compiled attention kernels, one by one, defined in the generated instance files.
#pragma once

#include <cstddef>
#include <utility>

#include "core/attention_config.hpp"

namespace sluice {

struct AttentionParams;

// For the GPU, as cudaLaunchKernelExC takes it.
template <AttentionConfig config>
const void* attention_kernel_entry();

// For the emulator: what each thread runs.
using EmulatedAttentionKernel = void (*)(const AttentionParams& params);
template <AttentionConfig config>
EmulatedAttentionKernel emulated_attention_kernel();

// What entry.operator()<config>() gives for a configuration that is known at run time; null for one that is not compiled.
template <class Entry>
auto find_attention_kernel(const AttentionConfig& wanted, Entry entry) {
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    decltype(entry.template operator()<kListedAttentionKernels[0]>()) found = nullptr;
    ((wanted == kListedAttentionKernels[i] ? void(found = entry.template operator()<kListedAttentionKernels[i]>()) : void()), ...);
    return found;
  }
  (std::make_index_sequence<kListedAttentionKernels.size()>());
}

}  // namespace sluice
