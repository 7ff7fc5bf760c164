// Cases of general groups, for the emulator and the GPU: sizes of groups, their matrices amid guards, and what may have changed in them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sluice/group_arguments.hpp"
#include "sluice/kernel_list.hpp"
#include "sluice/plan.hpp"

namespace sluice::gpu_tests {

struct GeneralCase {
  struct Sizes {
    std::int32_t m, n, k;
  };
  std::string name;
  GemmProblem problem;       // its m, n, k and batch come from the sizes
  std::vector<Sizes> sizes;  // as the device has them: they may be out of range
  GemmProblem largest{};     // m, n and k of it, where they are not 0, bound the sizes
  int pad_elems = 0;         // of every row, beyond what alignment asks
  int offset_d_elems = 0;    // of D and C from a multiple of 256 bytes
  int pad_scale_elems = 0;   // of what is adjacent of scales that follow K; 0: their leading dimensions are kPacked
  int offset_scale_elems = 0;
  bool c_is_d = false;
  WorkClaim claim = WorkClaim::ticket;
};

std::string describe(const GeneralCase& general_case);
GemmProblem problem_of(const GeneralCase& general_case);
PlanOptions options_of(const GeneralCase& general_case, const KernelConfig& kernel);

// Group counts, sizes of 0 and 1, edges that are no multiples of a tile, giants, epilogues, types of D. `few`: as many as an emulator
// finishes in seconds.
std::vector<GeneralCase> general_cases(const KernelConfig& kernel, bool few);

// All groups' matrices in one stretch of bytes, which can lie anywhere at a multiple of 256. Between them are guards; NaN is what of a row
// of A and B no group has, and what D begins as.
class GeneralMemory {
 public:
  GeneralMemory(const GeneralCase& general_case, std::uint64_t seed);

  std::size_t bytes() const { return blocks_.size() * sizeof(Block); }
  std::byte* data() { return blocks_.front().bytes; }
  const std::byte* data() const { return blocks_.front().bytes; }

  // The groups, with their matrices at `base`; C at `base_c`.
  std::vector<GroupArguments> groups(const std::byte* base) const { return groups(base, base); }
  std::vector<GroupArguments> groups(const std::byte* base, const std::byte* base_c) const;

  // What is wrong with memory in which the groups have been computed, compared with this one before they were; empty if nothing.
  std::string wrong_in(const GeneralMemory& after, std::int64_t samples = 0) const;

 private:
  static constexpr std::size_t kAlignment = 256;
  struct alignas(kAlignment) Block {
    std::byte bytes[kAlignment];
  };
  struct Offsets {
    std::size_t a, b, c, d, bias, scale_a, scale_b;
  };
  // The scales of one operand of one group, as they lie.
  struct ScaleRuns {
    std::int64_t count = 0, length = 0, pitch = 0;
  };
  static ScaleRuns scale_runs(Scaling scaling, Layout layout, std::int64_t vectors, std::int64_t k, int pad_elems);

  bool in_some_d(std::size_t byte) const;

  GemmProblem problem_;
  std::vector<GroupArguments> shapes_;  // without pointers
  std::vector<Offsets> offsets_;
  std::vector<std::array<ScaleRuns, 2>> scales_;
  std::vector<std::pair<std::size_t, std::size_t>> rows_of_d_;  // first byte and the one behind the last, ascending
  std::vector<Block> blocks_;
};

}  // namespace sluice::gpu_tests
