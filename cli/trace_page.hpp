// The HTML page of `sluice trace`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sluice/simulate.hpp"
#include "sluice/trace.hpp"

namespace sluice::cli {

// What a page and the answer of --json have in common.
nlohmann::ordered_json to_json(const Trace& trace, const TraceSummary& summary);

// `simulation`: nothing for what cannot be simulated. `lines`: what else is to be said, in words.
std::string trace_page(const Trace& trace, const TraceSummary& summary, const std::optional<Simulation>& simulation,
                       const std::vector<std::string>& lines);

}  // namespace sluice::cli
