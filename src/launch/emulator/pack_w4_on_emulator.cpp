// pack_w4_on_emulator() and permute_columns_on_emulator(): bind host pointers to a problem and run its kernel on the emulated machine.
#include <cstddef>
#include <cstdint>

#include "sluice/w4.hpp"

#include "core/check_w4.hpp"
#include "core/w4_layout.hpp"
#include "core/w4_packing.hpp"
#include "kernel/w4/w4_entry.hpp"
#include "launch/bind_w4.hpp"
#include "launch/emulator/run_on_machine.hpp"

namespace sluice {
namespace {

namespace emulated = arch::emulated;

emulated::GlobalBuffer buffer(const char* name, const void* data, std::int64_t bytes, bool writable = false) {
  return {.name = name, .data = data, .bytes = static_cast<std::size_t>(bytes), .writable = writable};
}

}  // namespace

Status pack_w4_on_emulator(const PackW4Problem& problem, const PackW4Arguments& arguments, const EmulatorOptions& options) {
  const Result<PackW4Problem> valid = validate(problem);
  if (!valid) return valid.error();
  const PackW4Problem& p = *valid;
  if (Status s = check_arguments(p, arguments); !s) return s;
  if (Status s = check_options(options); !s) return s;
  if (is_empty(p)) return Nothing{};
  const BoundPackW4 bound = bind(p, arguments);
  const std::int64_t scales = p.n * w4_groups(p.k, p.format);
  emulated::Launch launch{
      .clusters = bound.grid_ctas,
      .threads_per_cta = kPackW4Threads,
      .buffers = {buffer("codes", arguments.codes, p.n * p.k / 2), buffer("scales", arguments.scales, scales * size_bytes(p.type_scales)),
                  buffer("packed", arguments.packed, w4_matrix_bytes(p.n, p.k, p.format), true)}};
  if (p.format.zero_points) launch.buffers.push_back(buffer("zeros", arguments.zeros, p.source == W4Source::plain ? scales : scales / 2));
  if (arguments.order != nullptr)
    launch.buffers.push_back(buffer("order", arguments.order, p.k * static_cast<std::int64_t>(sizeof(std::int32_t))));
  return run_on_machine("pack_w4", launch, options, [&, kernel = emulated_pack_w4_kernel()] { kernel(bound.params); });
}

Status permute_columns_on_emulator(const PermuteColumnsProblem& problem, const void* from, const std::int32_t* order, void* to,
                                   const EmulatorOptions& options) {
  const Result<PermuteColumnsProblem> valid = validate(problem);
  if (!valid) return valid.error();
  const PermuteColumnsProblem& p = *valid;
  if (Status s = check_arguments(p, from, order, to); !s) return s;
  if (Status s = check_options(options); !s) return s;
  if (is_empty(p)) return Nothing{};
  const BoundPermuteColumns bound = bind(p, from, order, to);
  const auto span = [&](std::int64_t leading) { return ((p.m - 1) * leading + p.k) * static_cast<std::int64_t>(sizeof(std::uint16_t)); };
  const emulated::Launch launch{
      .clusters = bound.grid_ctas,
      .threads_per_cta = kPermuteThreads,
      .buffers = {buffer("from", from, span(p.ld_from)), buffer("order", order, p.k * static_cast<std::int64_t>(sizeof(std::int32_t))),
                  buffer("to", to, span(p.ld_to), true)}};
  return run_on_machine("permute_columns", launch, options, [&, kernel = emulated_permute_columns_kernel()] { kernel(bound.params); });
}

}  // namespace sluice
