// Binds pointers to a histogram's plan, for either machine.
#pragma once

#include "sluice/histogram.hpp"

#include "kernel/histogram/histogram_params.hpp"

namespace sluice {

struct BoundHistogram {
  HistogramParams params;
  int grid_ctas;
  int clearing_ctas;  // of the kernel that comes first; 0: counts are added to
};

// Of a plan that has been checked, whose problem is not empty, with pointers that have been checked.
BoundHistogram bind(const HistogramPlan& plan, const HistogramArguments& arguments);

}  // namespace sluice
