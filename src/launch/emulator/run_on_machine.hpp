// What all operations on the emulated machine share: the check of their options, and how what a kernel does wrong becomes an error.
#pragma once

#include <string>

#include "sluice/emulator.hpp"
#include "sluice/error.hpp"

#include "arch/emulated/emulator.hpp"

namespace sluice {

inline Status check_options(const EmulatorOptions& options) {
  if (options.resident_clusters >= 0) return Nothing{};
  return Error{ErrorCode::invalid_argument,
               "resident_clusters = " + std::to_string(options.resident_clusters) + " is negative; pass 0 for as many as make four CTAs"};
}

// `what` is named in the error.
template <class Kernel>
Status run_on_machine(const std::string& what, const arch::emulated::Launch& launch, const EmulatorOptions& options, Kernel&& kernel) {
  try {
    arch::emulated::run(launch, {options}, kernel);
  } catch (const arch::emulated::EmulationError& wrong) {
    return Error{ErrorCode::emulation, what + ": " + wrong.what()};
  }
  return Nothing{};
}

}  // namespace sluice
