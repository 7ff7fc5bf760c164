// quantize_on_emulator(): binds host pointers to a problem and runs its kernel on the emulated machine.
#include <cstddef>
#include <cstdint>

#include "sluice/quantize.hpp"

#include "core/check_quantize.hpp"
#include "core/quantize_config.hpp"
#include "kernel/quantize/quantize_entry.hpp"
#include "launch/bind_quantize.hpp"
#include "launch/emulator/run_on_machine.hpp"

namespace sluice {
namespace {

namespace emulated = arch::emulated;

emulated::GlobalBuffer buffer(const char* name, const void* data, std::int64_t elements, DataType type, bool writable) {
  return {.name = name,
          .data = data,
          .bytes = static_cast<std::size_t>(elements) * static_cast<std::size_t>(size_bytes(type)),
          .writable = writable};
}

}  // namespace

Status quantize_on_emulator(const QuantizeProblem& problem, const QuantizeArguments& arguments, const EmulatorOptions& options) {
  const Result<QuantizeProblem> valid = validate(problem);
  if (!valid) return valid.error();
  const QuantizeProblem& p = *valid;
  if (Status s = check_arguments(p, arguments); !s) return s;
  if (Status s = check_options(options); !s) return s;
  if (is_empty(p)) return Nothing{};
  const BoundQuantize bound = bind(p, arguments, 0);
  const QuantizeConfig config = quantize_config(p);
  const auto span = [&](std::int64_t leading) { return (p.m - 1) * leading + p.k; };
  emulated::Launch launch{
      .clusters = bound.grid_ctas,
      .threads_per_cta = threads_per_cta(config),
      .shared_memory_bytes = shared_memory_bytes(config),
      .buffers = {buffer("x", arguments.x, span(p.ldx), p.type_x, false), buffer("q", arguments.q, span(p.ldq), p.type_q, true),
                  buffer("scale", arguments.scale, scale_elems(p), DataType::fp32, true)}};
  if (p.input == QuantizeInput::silu_times) launch.buffers.push_back(buffer("y", arguments.y, span(p.ldy), p.type_x, false));
  const EmulatedQuantizeKernel kernel =
      find_quantize_kernel(config, []<QuantizeConfig listed>() { return emulated_quantize_kernel<listed>(); });
  return run_on_machine("quantize", launch, options, [&] { kernel(bound.params); });
}

}  // namespace sluice
