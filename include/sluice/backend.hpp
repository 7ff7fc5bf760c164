// The machines that carry a plan out, and which of them to take.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/plan_value.hpp"

namespace sluice {

// Where a plan can be carried out.
enum class Backend : std::uint8_t {
  cuda,       // run(): on the current GPU
  emulator,   // run_on_emulator(): the same kernel on an emulated one (sluice/emulator.hpp)
  reference,  // run_on_cpu(): plain loops
};
const char* to_string(Backend backend);  // "cuda", "emulator", "reference"
std::optional<Backend> parse_backend(std::string_view text);

struct BackendChoice {
  Backend backend = Backend::reference;
  std::string why;  // in words: what speaks against those that come before it
};

// The GPU if the current one is a Hopper and the build has kernels for it, else the emulator for what it can finish in seconds, else
// the reference. A schedule that no kernel runs is the reference's, too.
BackendChoice automatic_backend(const Plan& plan);

}  // namespace sluice
