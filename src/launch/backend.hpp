// The choice of a machine, apart from which machines there are.
#pragma once

#include <optional>

#include "sluice/error.hpp"
#include "sluice/plan.hpp"
#include "sluice/run.hpp"

namespace sluice {

struct Machines {
  std::optional<Error> no_gpu;  // why the GPU is out; nothing if it is there
  bool emulator = false;
};

BackendChoice choose_backend(const Plan& plan, const Machines& machines);

}  // namespace sluice
