// General groups (Grouping::general) for the reference: one product after the other.
#pragma once

#include "sluice/run.hpp"
#include "sluice/verify.hpp"

namespace sluice {

// run_on_cpu() and verify() of a problem with such groups. Plan, problem and arguments are checked, but for the groups.
Status run_groups_on_cpu(const Plan& plan, const GemmArguments& arguments, int threads, const Progress& progress);
Result<VerifyReport> verify_groups(const GemmProblem& problem, const GemmArguments& arguments, const void* c_before, std::int64_t samples,
                                   std::uint64_t seed);

}  // namespace sluice
