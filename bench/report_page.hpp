// What a benchmark found, as a page of plots.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bench/report.hpp"
#include "sluice/device.hpp"

namespace sluice::bench {

// The plots that the results have numbers for, by name: "throughput", "ratio", "roofline", "planner".
std::vector<std::pair<std::string, std::string>> report_plots(const BenchReport& report, const DeviceSpec& device);

std::string report_page(const BenchReport& report, const DeviceSpec& device);

}  // namespace sluice::bench
