// quantize(): binds pointers to a problem and enqueues one kernel.
#include "sluice/quantize.hpp"

#include "core/check_quantize.hpp"
#include "core/quantize_config.hpp"
#include "kernel/quantize/quantize_entry.hpp"
#include "launch/bind_quantize.hpp"
#include "launch/cuda/one_kernel.hpp"

namespace sluice {

Status quantize(const QuantizeProblem& problem, const QuantizeArguments& arguments, Stream stream) {
  const Result<QuantizeProblem> valid = validate(problem);
  if (!valid) return valid.error();
  if (Status s = check_arguments(*valid, arguments); !s) return s;
  if (is_empty(*valid)) return Nothing{};
  if (Status s = check_hopper(); !s) return s;
  BoundQuantize bound = bind(*valid, arguments, current_sm_count());
  const QuantizeConfig config = quantize_config(*valid);
  return enqueue({.kernel = find_quantize_kernel(config, []<QuantizeConfig listed>() { return quantize_kernel_entry<listed>(); }),
                  .ctas = bound.grid_ctas,
                  .threads_per_cta = threads_per_cta(config),
                  .shared_memory_bytes = shared_memory_bytes(config)},
                 &bound.params, stream);
}

}  // namespace sluice
