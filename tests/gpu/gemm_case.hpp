// What the GPU tests multiply: one case is a problem, how its operands lie in memory, and how the result is judged.
#pragma once

#include <string>
#include <vector>

#include "bench/exactness.hpp"
#include "sluice/kernel_config.hpp"
#include "sluice/plan.hpp"
#include "sluice/problem.hpp"

namespace sluice::gpu_tests {

// What C points to.
enum class CPlace { own, is_d, null, poison };

struct GemmCase {
  std::string what;
  GemmProblem problem;  // the types of A and B and the layouts are the kernel's, the alignments follow from the offsets
  PlanOptions options;  // the kernel's name is filled in
  bench::Exactness exactness = bench::Exactness::bounded;
  CPlace c = CPlace::own;    // of consequence when beta != 0; null and poison: beta == 0 must not read it
  bool null_inputs = false;  // A and B are null: alpha or k is 0

  // Of a grouped problem: what the device holds (GemmArguments::groups). The problem's batch follows from it.
  std::vector<std::int32_t> groups;

  // Leading dimensions are the shortest the kernel can load plus this.
  int pad_a_elems = 0, pad_b_elems = 0, pad_c_elems = 0, pad_d_elems = 0;
  int pad_scale_a_elems = 0, pad_scale_b_elems = 0;
  // Gaps between the matrices of a batch. -1: the stride is 0, one matrix for all.
  int gap_a_elems = 0, gap_b_elems = 0, gap_c_elems = 0, gap_d_elems = 0;
  int gap_scale_a_elems = 0, gap_scale_b_elems = 0;
  // From a 256-byte boundary to the first element.
  int offset_a_elems = 0, offset_b_elems = 0, offset_d_elems = 0;
  int offset_scale_elems = 1;  // of both operands: they need be aligned to no more than their size
};

// The problem with everything filled in that depends on the kernel.
GemmProblem problem_for(const KernelConfig& kernel, const GemmCase& gemm_case);

// The rows of a group, or of a batch's matrix. Those of A and D, if groups are ragged.
struct Rows {
  std::int64_t first = 0, count = 0;
};
Rows rows_of(const GemmProblem& p, const std::vector<std::int32_t>& groups, std::int64_t group);
// What of K a group has: all, but for groups along K.
Rows depth_of(const GemmProblem& p, const std::vector<std::int32_t>& groups, std::int64_t group);
// How many matrices A and D are.
std::int64_t row_matrices(const GemmProblem& p);

// Whether pieces of the kernel can meet in a cluster or in slices, in the words of the public interface.
bool meets_in_cluster(const KernelConfig& kernel);
bool meets_in_slices(const KernelConfig& kernel);

// `small`: a few cases, none above a few hundred in any size, for compute-sanitizer.
std::vector<GemmCase> cases_for(const KernelConfig& kernel, int kernel_index, bool small);

// Spans of a matrix from its first element to its last, over the batch, in elements; of packed weights in bytes.
std::int64_t span_a(const GemmProblem& p);
std::int64_t span_b(const GemmProblem& p);
std::int64_t span_c(const GemmProblem& p);
std::int64_t span_d(const GemmProblem& p);

// How the scales of one matrix lie: runs of adjacent ones. No runs without scales.
struct ScaleRuns {
  std::int64_t runs = 0, length = 0, pitch = 0;
};
ScaleRuns scale_runs_a(const GemmProblem& p);
ScaleRuns scale_runs_b(const GemmProblem& p);

}  // namespace sluice::gpu_tests
