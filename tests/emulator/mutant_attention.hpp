// The mutant driver for attention.
#pragma once

namespace sluice::test {

// mutant_driver attention HEAD_SIZE QUERY_LEN WINDOW LENGTH,LENGTH,.. SEEDS
int run_mutant_attention(int argc, char** argv);

}  // namespace sluice::test
