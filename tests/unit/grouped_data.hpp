// Grouped problems with their memory, and the sizes of their groups on the host.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "gemm_data.hpp"

namespace sluice::test {

using Sizes = std::vector<std::int32_t>;

inline GemmArguments arguments_of(GemmData& data, const Sizes& sizes) {
  GemmArguments arguments = data.arguments();
  arguments.groups = sizes.data();
  return arguments;
}

inline void run(GemmData& data, const Sizes& sizes, const PlanOptions& options) {
  const Result<Plan> made = plan_on_h10(data.problem, options);
  ASSERT_TRUE(made) << made.error().message;
  const Status status = run_on_cpu(*made, arguments_of(data, sizes));
  ASSERT_TRUE(status) << status.error().message;
}

}  // namespace sluice::test
