#include "gemm_place.hpp"

#include <chrono>
#include <limits>

#include <fmt/core.h>

#include "choices.hpp"
#include "gpu.hpp"
#include "progress.hpp"
#include "session.hpp"

namespace sluice::cli {
namespace {

// All bits set is NaN in every output type: an element that nobody writes shows.
constexpr std::byte kPoison{0xff};

std::size_t result_bytes(const GemmProblem& p) {
  return static_cast<std::size_t>(row_matrices(p) * p.m * p.n) * static_cast<std::size_t>(size_bytes(p.type_d));
}

// A flag that only one backend reads needs that backend by name: what is chosen automatically may be another one.
Status check_flag_for(Backend reader, bool given, const char* flag, std::optional<Backend> backend) {
  if (!given || backend == reader) return Nothing{};
  return Error{ErrorCode::invalid_argument, fmt::format("{} is for the backend {} alone; pass --backend {} too, or leave {} out", flag,
                                                        sluice::to_string(reader), sluice::to_string(reader), flag)};
}

Status make_gpu_current(int index) {
  if (Status s = select_gpu(index); !s) return s;
  if (const Result<DeviceSpec> current = current_device(); !current) return current.error();
  return Nothing{};
}

Status check_built(Backend backend) {
  if (backend != Backend::emulator || built_with_emulator()) return Nothing{};
  return Error{ErrorCode::unsupported,
               "this build of Sluice has no emulator; configure with -DSLUICE_EMULATOR=ON, or pass --backend reference"};
}

}  // namespace

void add_place_flags(CLI::App& command, PlaceFlags& flags) {
  const std::string group = "Where to compute";
  command
      .add_option("--backend", flags.backend,
                  fmt::format("{}: on a Hopper GPU, by the kernel on an emulated one, or by plain loops. Default: the first of them that "
                              "is there and takes no more than seconds",
                              kBackends))
      ->group(group);
  command.add_option("--gpu", flags.gpu, "Compute on this GPU")->group(group);
  command.add_option("--threads", flags.threads, "With --backend reference: CPU threads (default: all cores)")
      ->check(CLI::Range(1, 4096))
      ->group(group);
  // Read as an unsigned number, -1 would be a large one.
  const CLI::Validator not_negative([](const std::string& text) { return text.starts_with('-') ? text + " must be 0 or more" : ""; },
                                    "0 OR MORE");
  command.add_option("--seed", flags.seed, "With --backend emulator: draws the interleaving (default: 0)")
      ->check(not_negative)
      ->group(group);
  command
      .add_option("--asynchrony", flags.asynchrony,
                  fmt::format("With --backend emulator: when copies and wgmma are carried out: {} (default: random)", kAsynchronies))
      ->group(group);
  command.add_option("--resident", flags.resident, "With --backend emulator: clusters that run at once (default: as many as make 4 CTAs)")
      ->check(above_zero())
      ->group(group);
}

Result<WantedPlace> read_place(const PlaceFlags& flags) {
  WantedPlace wanted{.threads = flags.threads.value_or(0)};
  if (flags.gpu) wanted.backend = Backend::cuda;
  if (!flags.backend.empty()) {
    const Result<Backend> named = choose("--backend", flags.backend, &parse_backend, kBackends);
    if (!named) return named.error();
    wanted.backend = *named;
  }
  for (const Status& s : {check_flag_for(Backend::cuda, flags.gpu.has_value(), "--gpu", wanted.backend),
                          check_flag_for(Backend::reference, flags.threads.has_value(), "--threads", wanted.backend),
                          check_flag_for(Backend::emulator, flags.seed.has_value(), "--seed", wanted.backend),
                          check_flag_for(Backend::emulator, !flags.asynchrony.empty(), "--asynchrony", wanted.backend),
                          check_flag_for(Backend::emulator, flags.resident.has_value(), "--resident", wanted.backend)})
    if (!s) return s.error();
  wanted.emulator.seed = flags.seed.value_or(0);
  wanted.emulator.resident_clusters = flags.resident.value_or(0);
  if (Status s = choose_into(wanted.emulator.asynchrony, "--asynchrony", flags.asynchrony, &parse_asynchrony, kAsynchronies); !s)
    return s.error();
  if (!wanted.backend) return wanted;
  if (Status s = check_built(*wanted.backend); !s) return s.error();
  if (wanted.backend == Backend::cuda)
    if (Status s = make_gpu_current(flags.gpu.value_or(0)); !s) return s.error();
  return wanted;
}

Place choose_place(const PlaceFlags& flags, const WantedPlace& wanted, const std::function<BackendChoice()>& automatic) {
  Place place;
  if (wanted.backend) {
    place.backend = *wanted.backend;
    place.why = flags.backend.empty() ? "--gpu" : "--backend " + flags.backend;
  } else {
    const BackendChoice choice = automatic();
    place.backend = choice.backend;
    place.why = choice.why;
  }
  switch (place.backend) {
    case Backend::cuda: {
      const Result<DeviceSpec> current = current_device();
      place.text = fmt::format("on GPU {}, {}", flags.gpu.value_or(0), current ? current->name : "which is gone");
      break;
    }
    case Backend::emulator:
      place.text = fmt::format("on the emulator, seed {}", wanted.emulator.seed);
      break;
    case Backend::reference:
      place.text = "on the CPU by the reference";
      break;
  }
  return place;
}

BackendChoice gpu_or_reference() {
  const Result<DeviceSpec> gpu = current_device();
  if (gpu) return {Backend::cuda, "the current GPU is a Hopper"};
  return {Backend::reference, "no GPU: " + (built_with_cuda() ? gpu.error().message : "this build has no CUDA kernels")};
}

GemmArguments arguments_of(const GemmInputs& inputs, GemmResult& result) {
  const auto pointer = [](const std::vector<std::byte>& data) { return data.empty() ? nullptr : data.data(); };
  return {.a = pointer(inputs.a),
          .b = pointer(inputs.b),
          .c = pointer(inputs.c),
          .d = result.d.empty() ? nullptr : result.d.data(),
          .bias = pointer(inputs.bias),
          .scale_a = inputs.scale_a.empty() ? nullptr : inputs.scale_a.data(),
          .scale_b = inputs.scale_b.empty() ? nullptr : inputs.scale_b.data(),
          .scale_d = result.scale_d.empty() ? nullptr : result.scale_d.data(),
          .groups = inputs.groups.numbers.empty() ? nullptr : inputs.groups.numbers.data()};
}

Result<GemmRun> multiply(const Plan& plan, const GemmInputs& inputs, Backend backend, const WantedPlace& wanted) {
  GemmRun done{.result = {.d = std::vector<std::byte>(result_bytes(plan.problem), kPoison), .scale_d = inputs.scale_d}};
  const bool finds_scales = plan.problem.scaling_d == Scaling::per_vector_128;
  if (finds_scales)
    done.result.scale_d.assign(static_cast<std::size_t>(scale_elems_d(plan.problem)), std::numeric_limits<float>::quiet_NaN());
  const GemmArguments arguments = arguments_of(inputs, done.result);
  if (backend == Backend::cuda) {
    const OperandBytes bytes{.a = inputs.a.size(),
                             .b = inputs.b.size(),
                             .c = inputs.c.size(),
                             .d = done.result.d.size(),
                             .bias = inputs.bias.size(),
                             .scale_a = inputs.scale_a.size() * sizeof(float),
                             .scale_b = inputs.scale_b.size() * sizeof(float),
                             .scale_d = done.result.scale_d.size() * sizeof(float),
                             .finds_scales = finds_scales,
                             .groups = inputs.groups.numbers.size() * sizeof(std::int32_t)};
    const Result<GpuRun> gpu = run_on_gpu(plan, arguments, bytes);
    if (!gpu) return gpu.error();
    done.seconds = gpu->microseconds / 1e6;
    done.launches = gpu->launches;
    return done;
  }
  const bool emulates = backend == Backend::emulator;
  ProgressLine progress(emulates ? "multiplying on the emulator:" : "multiplying on the CPU:");
  const auto begin = std::chrono::steady_clock::now();
  const Status status = emulates ? run_on_emulator(plan, arguments, wanted.emulator, progress.callback())
                                 : run_on_cpu(plan, arguments, wanted.threads, progress.callback());
  if (!status) return status.error();
  done.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return done;
}

}  // namespace sluice::cli
