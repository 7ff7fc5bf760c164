// How fast memory alone is: a plain launch that reads so many bytes and does nothing with them. A product cannot be faster than reading
// its weights.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "bench/report.hpp"
#include "sluice/error.hpp"

namespace sluice::bench {

// "all": the powers of two from 1 MB to 1 GB (MB: 10^6 bytes); else numbers of MB, separated by commas. In bytes, multiples of 16.
Result<std::vector<std::size_t>> floor_sizes(const std::string& megabytes);

struct FloorResult {
  std::size_t bytes = 0;
  Timing timing;
  int rotating_regions = 0;
};

struct FloorReport {
  Environment environment;
  std::vector<FloorResult> results;
};

double gb_per_s(const FloorResult& result);
std::string table_header(const FloorReport& report);
std::string table_row(const FloorResult& result);
std::string table_footer(const FloorReport& report);
std::string to_json(const FloorReport& report);

}  // namespace sluice::bench
