// The few statistics that benchmarks report.
#pragma once

#include <vector>

namespace sluice::bench {

// Of an empty list: 0.
double median(std::vector<double> values);
double geometric_mean(const std::vector<double>& values);  // of positive values
double minimum(const std::vector<double>& values);

// Half of the distance between the quartiles over the median: how much a measurement scatters.
double relative_spread(std::vector<double> values);

}  // namespace sluice::bench
