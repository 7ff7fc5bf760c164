// Where `sluice gemm` computes: on a Hopper GPU if there is one, else on the CPU.
#pragma once

#include <optional>
#include <string>

#include "gemm_inputs.hpp"
#include "planning.hpp"
#include "sluice/plan.hpp"
#include "sluice/run.hpp"

namespace sluice::cli {

struct PlaceFlags {
  bool cpu = false;
  std::optional<int> gpu;
  int threads = 0;
  std::string device;  // to plan for
};

struct Place {
  bool on_gpu = false;
  ChosenDevice device;  // the plan is made for it
  std::string text;     // "on the CPU (...)", "on GPU 0 (...)"
};
Result<Place> choose_place(const PlaceFlags& flags);

struct GemmRun {
  std::vector<std::byte> d;
  double seconds = 0;
  int launches = 0;  // on the GPU, for timing
};
Result<GemmRun> multiply(const Plan& plan, const GemmInputs& inputs, const Place& place, int threads);

GemmArguments arguments_of(const GemmInputs& inputs, std::vector<std::byte>& d);

}  // namespace sluice::cli
