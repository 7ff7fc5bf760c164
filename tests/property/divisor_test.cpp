// Division by what is the same for a whole schedule, as kernels do it.
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "scheduler/divisor.hpp"

namespace sluice {
namespace {

constexpr std::int32_t kLargest = std::numeric_limits<std::int32_t>::max();

TEST(Divisor, DividesTheNumbersAroundEveryEdge) {
  for (std::int32_t divisor :
       {1, 2, 3, 4, 5, 7, 127, 128, 129, 641, 65535, 65536, 65537, (1 << 30) - 1, 1 << 30, (1 << 30) + 1, kLargest - 1, kLargest})
    for (std::int32_t quotient = 0; quotient < 3; ++quotient)
      for (const std::int64_t near : {-1, 0, 1})
        for (const std::int64_t at :
             {std::int64_t{quotient} * divisor + near, std::int64_t{kLargest} / divisor * divisor + near, std::int64_t{kLargest} + near}) {
          if (at < 0 || at > kLargest) continue;
          const auto a = static_cast<std::int32_t>(at);
          EXPECT_EQ(Reciprocal(divisor).quotient(a), a / divisor) << a << " / " << divisor;
          EXPECT_EQ(PlainDivisor(divisor).quotient(a), a / divisor) << a << " / " << divisor;
        }
}

RC_GTEST_PROP(Divisor, IsDivision, ()) {
  const int bits = *rc::gen::inRange(1, 32);
  const auto divisor = *rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << bits);
  const auto a = static_cast<std::int32_t>(*rc::gen::inRange<std::int64_t>(0, std::int64_t{kLargest} + 1));
  RC_ASSERT(Reciprocal(static_cast<std::int32_t>(divisor)).quotient(a) == a / divisor);
}

}  // namespace
}  // namespace sluice
