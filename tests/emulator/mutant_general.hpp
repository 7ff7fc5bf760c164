// The mutant driver for general groups.
#pragma once

namespace sluice::test {

// mutant_driver general KERNEL_NAME CASE SEEDS    CASE: the name of one of general_cases(), without blanks
int run_mutant_general(int argc, char** argv);

}  // namespace sluice::test
