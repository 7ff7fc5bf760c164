// How many random cases each property is tried on, unless RC_PARAMS in the environment says otherwise (for example
// RC_PARAMS="seed=... max_success=100000", or the reproduce=... line that a failure prints).
#include <cstdlib>

namespace {

// Before main, and so before rapidcheck first reads its configuration.
[[maybe_unused]] const int kDefaultCases = setenv("RC_PARAMS", "max_success=2000", 0);

}  // namespace
