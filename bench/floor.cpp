#include "bench/floor.hpp"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

#include "bench/report_json.hpp"

namespace sluice::bench {
namespace {

constexpr double kMegabyte = 1e6, kMostMegabytes = 16384;
constexpr std::size_t kGrain = 16;  // of a bulk copy

std::size_t bytes_of(double megabytes) { return static_cast<std::size_t>(megabytes * kMegabyte) / kGrain * kGrain; }

}  // namespace

Result<std::vector<std::size_t>> floor_sizes(const std::string& megabytes) {
  std::vector<std::size_t> sizes;
  if (megabytes == "all") {
    for (double size = 1; size <= 1024; size *= 2) sizes.push_back(bytes_of(size));
    return sizes;
  }
  for (std::size_t begin = 0; begin <= megabytes.size();) {
    const std::size_t end = std::min(megabytes.find(',', begin), megabytes.size());
    const std::string word = megabytes.substr(begin, end - begin);
    char* stop = nullptr;
    const double size = std::strtod(word.c_str(), &stop);
    if (word.empty() || *stop != '\0' || !(size * kMegabyte >= kGrain && size <= kMostMegabytes))
      return Error{
          ErrorCode::invalid_argument,
          fmt::format("'{}' is no size in MB from 16 bytes to {}; write numbers separated by commas, or all", word, kMostMegabytes)};
    sizes.push_back(bytes_of(size));
    begin = end + 1;
  }
  return sizes;
}

double gb_per_s(const FloorResult& r) { return r.timing.us > 0 ? static_cast<double>(r.bytes) / r.timing.us * 1e-3 : 0; }

std::string table_header(const FloorReport&) {
  return fmt::format("{:>10} {:>10} {:>8} {:>8} {:>8}\n", "MB", "us", "spread", "GB/s", "regions");
}

std::string table_row(const FloorResult& r) {
  return fmt::format("{:>10.2f} {:>10.2f} {:>7.1f}% {:>8.0f} {:>8}\n", static_cast<double>(r.bytes) / kMegabyte, r.timing.us,
                     100 * r.timing.spread, gb_per_s(r), r.rotating_regions);
}

std::string table_footer(const FloorReport& report) {
  const Environment& e = report.environment;
  return fmt::format("\n{}, driver {}, CUDA {}, Sluice {} ({}), {}\n", e.gpu, e.driver, e.cuda, e.sluice, e.commit, e.date);
}

std::string to_json(const FloorReport& report) {
  nlohmann::ordered_json json = {{"environment", to_json(report.environment)}, {"results", nlohmann::ordered_json::array()}};
  for (const FloorResult& r : report.results)
    json["results"].push_back({{"bytes", r.bytes},
                               {"us", r.timing.us},
                               {"gb_per_s", gb_per_s(r)},
                               {"relative_spread", r.timing.spread},
                               {"rounds", r.timing.rounds},
                               {"launches_per_graph", r.timing.launches_per_graph},
                               {"rotating_regions", r.rotating_regions}});
  return json.dump(2) + "\n";
}

}  // namespace sluice::bench
