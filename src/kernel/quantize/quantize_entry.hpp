// The compiled quantize kernels, one by one, defined in the generated instance files.
#pragma once

#include <cstddef>
#include <utility>

#include "core/quantize_config.hpp"

namespace sluice {

struct QuantizeParams;

// For the GPU, as cudaLaunchKernelExC takes it.
template <QuantizeConfig config>
const void* quantize_kernel_entry();

// For the emulator: what each thread runs.
using EmulatedQuantizeKernel = void (*)(const QuantizeParams& params);
template <QuantizeConfig config>
EmulatedQuantizeKernel emulated_quantize_kernel();

inline constexpr std::size_t kQuantizeKernels = std::size_t{3} * 2 * 3 * 2;
constexpr QuantizeConfig listed_quantize_kernel(std::size_t index) {
  constexpr DataType kTypesX[] = {DataType::bf16, DataType::fp16, DataType::fp32};
  constexpr Scaling kScalings[] = {Scaling::per_vector, Scaling::per_vector_128, Scaling::per_block_128};
  return {.type_x = kTypesX[index / 12],
          .type_q = index / 6 % 2 == 0 ? DataType::e4m3 : DataType::e5m2,
          .scaling = kScalings[index / 2 % 3],
          .input = index % 2 == 0 ? QuantizeInput::plain : QuantizeInput::silu_times};
}

// What entry.operator()<config>() gives for a configuration that is known at run time. Every validated problem has one.
template <class Entry>
auto find_quantize_kernel(const QuantizeConfig& wanted, Entry entry) {
  return [&]<std::size_t... i>(std::index_sequence<i...>) {
    decltype(entry.template operator()<listed_quantize_kernel(0)>()) found = nullptr;
    ((wanted == listed_quantize_kernel(i) ? void(found = entry.template operator()<listed_quantize_kernel(i)>()) : void()), ...);
    return found;
  }
  (std::make_index_sequence<kQuantizeKernels>());
}

}  // namespace sluice
