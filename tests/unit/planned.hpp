// Plans that must be made.
#pragma once

#include <gtest/gtest.h>

#include "sluice/sluice.hpp"

namespace sluice {

inline Plan planned_on(const char* device, const GemmProblem& problem, const PlanOptions& options) {
  const Result<Plan> made = plan(problem, find_device(device).value(), options);
  EXPECT_TRUE(made) << made.error().message;
  return made ? *made : Plan{};
}

}  // namespace sluice
