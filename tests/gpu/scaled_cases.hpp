// What cases of FP8 kernels have beyond others: scales of every kind.
#pragma once

#include <span>
#include <vector>

#include "gemm_case.hpp"

namespace sluice::gpu_tests {

// How both operands are scaled, and how their scales lie.
struct ScaleKind {
  Scaling a = Scaling::none, b = Scaling::none;
  Layout layout_a = Layout::row_major, layout_b = Layout::row_major;
  int pad_a_elems = 0, pad_b_elems = 0;
};

std::span<const ScaleKind> scale_kinds();        // every mode and layout
std::span<const ScaleKind> block_scale_kinds();  // those whose scales change along K, in both operands

std::span<const ScaleKind> grouped_scale_kinds();  // those that rows of ragged groups can have

// The case as an FP8 kernel can run it: with the n-th of these kinds of scales, and what was said in elements of 16 bits in as many bytes
// (offsets, padding). For other kernels it is as it was.
GemmCase with_scales(GemmCase gemm_case, const KernelConfig& kernel, int n, std::span<const ScaleKind> kinds = scale_kinds());

// Around blocks of 128, of M, N and K, with every kind of scales.
void add_scaled(std::vector<GemmCase>& cases, const KernelConfig& kernel, int kernel_index);

// Scales that the copy engine can fetch as runs, and such as miss it by one thing: where they begin, how far apart columns lie, how many
// there are. `small`: two of them, for the emulator.
void add_runs(std::vector<GemmCase>& cases, const KernelConfig& kernel, int kernel_index, bool small = false);

}  // namespace sluice::gpu_tests
