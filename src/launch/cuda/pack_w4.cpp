// pack_w4() and permute_columns(): bind pointers to a problem and enqueue one kernel.
#include "sluice/w4.hpp"

#include "core/check_w4.hpp"
#include "core/w4_packing.hpp"
#include "kernel/w4/w4_entry.hpp"
#include "launch/bind_w4.hpp"
#include "launch/cuda/one_kernel.hpp"

namespace sluice {

Status pack_w4(const PackW4Problem& problem, const PackW4Arguments& arguments, Stream stream) {
  const Result<PackW4Problem> valid = validate(problem);
  if (!valid) return valid.error();
  if (Status s = check_arguments(*valid, arguments); !s) return s;
  if (is_empty(*valid)) return Nothing{};
  if (Status s = check_hopper(); !s) return s;
  BoundPackW4 bound = bind(*valid, arguments);
  return enqueue({.kernel = pack_w4_kernel_entry(), .ctas = bound.grid_ctas, .threads_per_cta = kPackW4Threads}, &bound.params, stream);
}

Status permute_columns(const PermuteColumnsProblem& problem, const void* from, const std::int32_t* order, void* to, Stream stream) {
  const Result<PermuteColumnsProblem> valid = validate(problem);
  if (!valid) return valid.error();
  if (Status s = check_arguments(*valid, from, order, to); !s) return s;
  if (is_empty(*valid)) return Nothing{};
  if (Status s = check_hopper(); !s) return s;
  BoundPermuteColumns bound = bind(*valid, from, order, to);
  return enqueue({.kernel = permute_columns_kernel_entry(), .ctas = bound.grid_ctas, .threads_per_cta = kPermuteThreads}, &bound.params,
                 stream);
}

}  // namespace sluice
