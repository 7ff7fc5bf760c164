// The HTML page of `sluice explain`.
#pragma once

#include <string>

#include "sluice/plan.hpp"

namespace sluice::cli {

// `most` candidates at most.
std::string explain_page(const Plan& plan, int most);

}  // namespace sluice::cli
