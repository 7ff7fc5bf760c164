// What differs for groups of rows, and for FP8 beside them: which rows of tiles there are, and how kernels' factors, fitted to single
// products, are to be taken.
#pragma once

#include "sluice/kernel_config.hpp"
#include "sluice/problem.hpp"

namespace sluice {

// Of a tile's rows, the shares that are fetched, and that a warpgroup multiplies one after the other.
struct RowShares {
  double fetched = 1, multiplied = 1;
};
RowShares shares_with_rows(const GemmProblem& p, const KernelConfig& kernel);

// The factor of a kernel where memory binds, of groups and of one product, and where tensor cores do, of groups.
double memory_factor_of_groups(const KernelConfig& kernel, double factor, double rounds);
double memory_factor_of_product(const KernelConfig& kernel, double factor, double rounds);
double matrix_factor_of_groups(const KernelConfig& kernel, double factor, double rounds);

// What scales of Q's single vectors cost tensor cores.
double column_scales_factor(const GemmProblem& p, const KernelConfig& kernel);

}  // namespace sluice
