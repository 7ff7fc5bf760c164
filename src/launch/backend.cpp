// Which machine carries a plan out when nobody has said.
#include "launch/backend.hpp"

#include <cmath>
#include <string>

#include "sluice/device.hpp"
#include "sluice/emulator.hpp"

#include "core/kernel_layout.hpp"
#include "launch/bind.hpp"
#include "scheduler/tile_order.hpp"

namespace sluice {
namespace {

constexpr double kPatienceSeconds = 5;

std::string about(double seconds) {
  if (seconds < 1) return "under a second";
  const std::string rounded = std::to_string(std::llround(seconds));
  return "about " + rounded + (rounded == "1" ? " second" : " seconds");
}

}  // namespace

double emulated_seconds(const Plan& plan) {
  // Fitted to 453 runs on one core of a server CPU, November 2026: all bf16 kernels, products of 1 x 64 x 64 to 512 x 512 x 512 and
  // 16 x 1024 x 1024, random asynchrony, with diagnosis. All of them took 0.55 to 1.8 times what this says.
  constexpr double kPerCta = 0.2e-3;     // threads made, shared memory and its shadow cleared
  constexpr double kPerOutput = 90e-9;   // accumulators changing hands, epilogue
  constexpr double kPerOperand = 24e-9;  // an element of A or B in a k-tile: copied, checked, converted
  constexpr double kPerMultiplyAdd = 0.46e-9;
  const KernelConfig& k = plan.kernel;
  const double tiles = static_cast<double>(cluster_tiles(plan.scheduler)) * cluster_size(k);
  const double outputs = static_cast<double>(k.tile_m) * k.tile_n, operands = static_cast<double>(k.tile_m + k.tile_n) * k.tile_k;
  return plan.grid_ctas * kPerCta +
         tiles * (outputs * kPerOutput + plan.scheduler.k_tiles * (operands * kPerOperand + outputs * k.tile_k * kPerMultiplyAdd));
}

BackendChoice choose_backend(const Plan& plan, const Machines& machines) {
  if (!machines.no_gpu) return {Backend::cuda, "the current GPU is a Hopper"};
  const std::string no_gpu = "no GPU: " + machines.no_gpu->message;
  if (!machines.emulator) return {Backend::reference, no_gpu + "; and this build has no emulator"};
  const double seconds = emulated_seconds(plan);
  if (seconds <= kPatienceSeconds) return {Backend::emulator, no_gpu};
  return {Backend::reference, no_gpu + "; and the emulator would take " + about(seconds)};
}

BackendChoice automatic_backend(const Plan& plan) {
  Machines machines{.emulator = built_with_emulator()};
  if (!built_with_cuda())
    machines.no_gpu = Error{ErrorCode::unsupported, "this build has no CUDA kernels"};
  else if (const Result<DeviceSpec> current = current_device(); !current)
    machines.no_gpu = current.error();
  return choose_backend(plan, machines);
}

}  // namespace sluice
