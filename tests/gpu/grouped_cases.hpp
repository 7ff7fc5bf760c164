// Cases whose groups of rows only the device counts.
#pragma once

#include <vector>

#include "gemm_case.hpp"

namespace sluice::gpu_tests {

// A case with these groups, whose rows (along K: whose elements of K) lie one after another from `first` on, or have `room` each.
GemmCase ragged_case(const std::vector<std::int32_t>& rows, std::int64_t n, std::int64_t k, std::int32_t first = 0);
GemmCase along_k_case(const std::vector<std::int32_t>& depths, std::int64_t m, std::int64_t n, std::int32_t first = 0);
GemmCase masked_case(const std::vector<std::int32_t>& rows, std::int64_t room, std::int64_t n, std::int64_t k);

// Few and many groups, empty ones and a giant one, every schedule, results that the copy engine stores and others. `small`: for the
// emulator.
void add_grouped(std::vector<GemmCase>& cases, const KernelConfig& kernel, int kernel_index, bool small = false);

}  // namespace sluice::gpu_tests
