// A kernel multiplies by reciprocals where others divide: the same numbers, for all that a schedule can ask.
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "random_plans.hpp"
#include "scheduler/plain_divisor.hpp"
#include "scheduler/single_items.hpp"

namespace sluice {
namespace {

constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();

RC_GTEST_PROP(Divisor, ReciprocalDividesAllNumbers, ()) {
  const auto divisor =
      *rc::gen::oneOf(rc::gen::inRange(1, 300), rc::gen::inRange(1, kMost),
                      rc::gen::map(rc::gen::inRange(0, 31), [](int bit) { return static_cast<std::int32_t>(std::int64_t{1} << bit); }));
  const auto times = *rc::gen::inRange<std::int64_t>(0, kMost / divisor + std::int64_t{1});
  const std::int64_t multiple = times * divisor;  // and what lies beside it
  const Reciprocal by(divisor);
  for (std::int64_t number : {multiple - 1, multiple, multiple + 1, multiple + divisor - 1, std::int64_t{kMost}})
    if (number >= 0 && number <= kMost)
      RC_ASSERT(by.quotient(static_cast<std::int32_t>(number)) == static_cast<std::int32_t>(number / divisor));
}

TEST(Divisor, EdgesOfBothKinds) {
  for (std::int32_t number : {0, 1, 2, 12345, kMost}) {
    EXPECT_EQ(Reciprocal(0).quotient(number), 0);
    EXPECT_EQ(PlainDivisor(0).quotient(number), 0);
    EXPECT_EQ(Reciprocal(1).quotient(number), number);
    EXPECT_EQ(Reciprocal(kMost).quotient(number), number == kMost ? 1 : 0);
    EXPECT_EQ(Reciprocal(kMost - 1).quotient(number), number == kMost ? 1 : 0);
  }
}

// What kernels are given, and what everybody else works out.
RC_GTEST_PROP(Divisor, SchedulesAreTheSameWithReciprocals, (const SchedulerParams& params)) {
  const Schedule<Reciprocal> schedule(params);
  RC_ASSERT(schedule.items.count() == item_count(params));
  for (int i = 0; i < 20; ++i) {
    const auto item = *rc::gen::inRange(0, item_count(params) + 1);
    if (item < item_count(params)) RC_ASSERT(schedule.item_at(item) == item_at(params, item));
  }
}

}  // namespace
}  // namespace sluice
