// Where `sluice gemm` and its brothers compute: where --backend says, else where they find best.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "gemm_inputs.hpp"
#include "planning.hpp"
#include "sluice/emulator.hpp"
#include "sluice/plan.hpp"
#include "sluice/run.hpp"

namespace sluice::cli {

struct PlaceFlags {
  std::string backend;  // empty: automatic
  std::optional<int> gpu;
  std::optional<int> threads;  // of the reference
  std::optional<std::uint64_t> seed;
  std::optional<int> resident;
  std::string asynchrony;
};
void add_place_flags(CLI::App& command, PlaceFlags& flags);

// What the flags ask for, checked before anything is read or planned. Makes the GPU that is asked for the current one.
struct WantedPlace {
  std::optional<Backend> backend;  // nothing: automatic
  int threads = 0;
  EmulatorOptions emulator;
};
Result<WantedPlace> read_place(const PlaceFlags& flags);

struct Place {
  Backend backend = Backend::reference;
  std::string text;  // "on GPU 0, h200", "on the emulator, seed 0", "on the CPU by the reference"
  std::string why;
};
// `automatic` decides where nobody has. For what passes over its data once, that is gpu_or_reference().
Place choose_place(const PlaceFlags& flags, const WantedPlace& wanted, const std::function<BackendChoice()>& automatic);
BackendChoice gpu_or_reference();

struct GemmResult {
  std::vector<std::byte> d;
  std::vector<float> scale_d;  // given or found, where D has scales
};

struct GemmRun {
  GemmResult result;
  double seconds = 0;
  int launches = 0;  // on the GPU, for timing
};
Result<GemmRun> multiply(const Plan& plan, const GemmInputs& inputs, Backend backend, const WantedPlace& wanted);

GemmArguments arguments_of(const GemmInputs& inputs, GemmResult& result);

}  // namespace sluice::cli
