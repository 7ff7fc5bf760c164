// The cases of one operation's benchmark, one after the other.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "bench/console.hpp"
#include "bench/environment.hpp"
#include "bench/operation_bench.hpp"
#include "bench/report_json.hpp"
#include "sluice/device.hpp"
#include "sluice/error.hpp"

namespace sluice::bench {

// Exit codes.
Result<int> measure_quantize(const OperationBenchOptions& options);
Result<int> measure_pack_w4(const OperationBenchOptions& options);
Result<int> measure_histogram(const OperationBenchOptions& options);
Result<int> measure_attention(const OperationBenchOptions& options);

// What a table ends with, where there is nothing to sum up.
template <class CaseResult>
std::string say_if_wrong(const std::vector<CaseResult>&, bool right) {
  return right ? "" : "RESULTS ARE WRONG\n";
}

// Times those of the cases that the options name, and reports them. A case has describe(); its result table_row(), to_json() and `wrong`,
// which is empty if it is right. measure(case, device) gives the result, last_line(results, right) what the table ends with.
template <class Case, class Measure, class LastLine>
Result<int> measure_cases(const OperationBenchOptions& options, std::vector<Case> cases, const std::string& columns, Measure&& measure,
                          LastLine&& last_line) {
  const Result<DeviceSpec> device = current_device();
  if (!device) return device.error();
  std::erase_if(cases, [&](const Case& c) { return describe(c).find(options.filter) == std::string::npos; });
  if (cases.empty()) return Error{ErrorCode::not_found, "no case has '" + options.filter + "' in its description"};
  nlohmann::ordered_json json = {{"environment", to_json(current_environment())}, {"cases", nlohmann::ordered_json::array()}};
  if (!options.json) fmt::print("{}\n{}\n", device->name, columns);
  std::vector<decltype(measure(cases.front(), *device))> results;
  bool right = true;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    show_progress(i, cases.size(), describe(cases[i]));
    results.push_back(measure(cases[i], *device));
    end_progress();
    json["cases"].push_back(to_json(results.back()));
    right = right && results.back().wrong.empty();
    if (!options.json) fmt::print("{}", table_row(results.back()));
  }
  fmt::print("{}", options.json ? json.dump(2) + "\n" : last_line(std::as_const(results), right));
  if (!options.out.empty())
    if (Status s = write_file(options.out, json.dump(2) + "\n"); !s) return s.error();
  return right ? kRight : kWrong;
}

}  // namespace sluice::bench
