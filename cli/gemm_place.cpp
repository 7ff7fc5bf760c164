#include "gemm_place.hpp"

#include <chrono>

#include <fmt/core.h>

#include "gpu.hpp"
#include "progress.hpp"

namespace sluice::cli {
namespace {

// All bits set is NaN in every output type: an element that nobody writes shows.
constexpr std::byte kPoison{0xff};

std::size_t result_bytes(const GemmProblem& p) {
  return static_cast<std::size_t>(p.batch * p.m * p.n) * static_cast<std::size_t>(size_bytes(p.type_d));
}

}  // namespace

Result<Place> choose_place(const PlaceFlags& flags) {
  if (flags.gpu)
    if (Status s = select_gpu(*flags.gpu); !s) return s.error();
  const Result<DeviceSpec> current = current_device();
  if (flags.gpu && !current) return current.error();
  Place place{.on_gpu = current.ok() && !flags.cpu};
  Result<ChosenDevice> device = choose_device(flags.device);
  if (!device) return device.error();
  place.device = std::move(*device);
  if (place.on_gpu)
    place.text = fmt::format("on GPU {} ({})", flags.gpu.value_or(0), current->name);
  else
    place.text = fmt::format("on the CPU ({})", flags.cpu           ? "--cpu"
                                                : built_with_cuda() ? current.error().message
                                                                    : "this build has no CUDA kernels");
  return place;
}

GemmArguments arguments_of(const GemmInputs& inputs, std::vector<std::byte>& d) {
  const auto pointer = [](const std::vector<std::byte>& data) { return data.empty() ? nullptr : data.data(); };
  return {.a = pointer(inputs.a),
          .b = pointer(inputs.b),
          .c = pointer(inputs.c),
          .d = d.empty() ? nullptr : d.data(),
          .bias = pointer(inputs.bias)};
}

Result<GemmRun> multiply(const Plan& plan, const GemmInputs& inputs, const Place& place, int threads) {
  GemmRun done{.d = std::vector<std::byte>(result_bytes(plan.problem), kPoison)};
  const GemmArguments arguments = arguments_of(inputs, done.d);
  if (place.on_gpu) {
    const OperandBytes bytes{
        .a = inputs.a.size(), .b = inputs.b.size(), .c = inputs.c.size(), .d = done.d.size(), .bias = inputs.bias.size()};
    const Result<GpuRun> gpu = run_on_gpu(plan, arguments, bytes);
    if (!gpu) return gpu.error();
    done.seconds = gpu->microseconds / 1e6;
    done.launches = gpu->launches;
    return done;
  }
  ProgressLine progress("multiplying on the CPU:");
  const auto begin = std::chrono::steady_clock::now();
  if (Status s = run_on_cpu(plan, arguments, threads, progress.callback()); !s) return s.error();
  done.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return done;
}

}  // namespace sluice::cli
