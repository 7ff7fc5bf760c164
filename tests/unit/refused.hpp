// What an operation that refuses must say.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sluice/error.hpp"

namespace sluice::test {

// Every piece stands in the error's message.
template <class T>
void expect_refused(const Result<T>& result, ErrorCode code, const std::vector<std::string>& pieces) {
  ASSERT_FALSE(result.ok()) << "accepted; expected '" << pieces.front() << "'";
  EXPECT_EQ(result.error().code, code) << result.error().message;
  for (const std::string& piece : pieces)
    EXPECT_NE(result.error().message.find(piece), std::string::npos) << "'" << piece << "' is not in: " << result.error().message;
}

}  // namespace sluice::test
