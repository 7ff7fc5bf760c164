// Binds pointers to the problems of packing and of permuting columns, for either machine.
#pragma once

#include "sluice/w4.hpp"

#include "kernel/w4/w4_params.hpp"

namespace sluice {

struct BoundPackW4 {
  PackW4Params params;
  int grid_ctas;
};
struct BoundPermuteColumns {
  PermuteColumnsParams params;
  int grid_ctas;
};

// Of validated problems that are not empty, with pointers that have been checked.
BoundPackW4 bind(const PackW4Problem& problem, const PackW4Arguments& arguments);
BoundPermuteColumns bind(const PermuteColumnsProblem& problem, const void* from, const std::int32_t* order, void* to);

}  // namespace sluice
