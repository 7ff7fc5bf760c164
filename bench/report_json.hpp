// JSON that several reports share.
#pragma once

#include <nlohmann/json.hpp>

#include "bench/report.hpp"

namespace sluice::bench {

nlohmann::ordered_json to_json(const Environment& environment);

}  // namespace sluice::bench
