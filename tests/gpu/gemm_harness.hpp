// Runs a case on the GPU: operands amid NaN, an output amid poison, everything judged on the GPU.
#pragma once

#include <string>
#include <utility>

#include "bench/device_check.hpp"
#include "bench/device_memory.hpp"
#include "bench/device_random.hpp"
#include "gemm_case.hpp"
#include "sluice/device.hpp"
#include "sluice/run.hpp"

namespace sluice::gpu_tests {

// How the whole program runs, from the command line.
struct Settings {
  bool small = false;  // few and small cases, each operand in an allocation of its own: what compute-sanitizer needs
  DeviceSpec device;
};
Settings& settings();

// Where the operands of a case lie.
struct PlacedCase {
  Plan plan;
  GemmArguments arguments;
  const void* c_before = nullptr;
  std::byte* d_region = nullptr;  // D and the guards around it, all poison before the run
  std::size_t d_region_bytes = 0;
  const void* dequantised_b = nullptr;  // the matrix that packed weights stand for
};

class GemmHarness {
 public:
  GemmHarness();

  // Plans the case for this kernel and fills its operands. Throws bench::DeviceFailure if it cannot be planned.
  PlacedCase place(const KernelConfig& kernel, const GemmCase& gemm_case);

  // Poisons the output (or fills it, where C is D), runs behind a stream through memory that leaves nothing of the operands in L2 (what is
  // fetched too early or asked for too late shows at such a pace), and enqueues the checks.
  void run_and_check(const PlacedCase& placed, const GemmCase& gemm_case);

  // Both, and the verdict: empty if all is well, otherwise what is wrong, with the tiles that hold the first wrong elements.
  std::string try_case(const KernelConfig& kernel, const GemmCase& gemm_case);

  void run(const PlacedCase& placed);
  void poison_output(const PlacedCase& placed);

  bench::DeviceCheck& check() { return check_; }
  cudaStream_t stream() const { return stream_; }

  // The largest |got - expected| over its bound since the last call.
  double take_worst_ratio() { return std::exchange(worst_ratio_, 0.0); }

 private:
  // An operand's memory: poisoned, with its first element at an offset from a 256-byte boundary.
  struct Memory {
    bench::DeviceBuffer buffer;
    std::byte* region = nullptr;
    std::size_t region_bytes = 0;
    std::byte* first = nullptr;
  };
  // A or B.
  struct Operand {
    Memory elements, scales;
  };
  struct OperandPlaces;
  void place_memory(Memory& memory, std::int64_t span_elems, int offset_elems, int element_bytes, const std::string& name);
  void place_operand(Operand& operand, const OperandPlaces& places, bench::Distribution distribution, std::uint64_t seed);
  void place_packed(PlacedCase& placed, const GemmCase& gemm_case);
  void place_groups(PlacedCase& placed, const GemmCase& gemm_case);
  void poison_vectors(std::byte* first, std::int64_t leading, std::int64_t length, std::int64_t vectors, int element_bytes);
  void fill_c(const PlacedCase& placed, void* memory, const GemmCase& gemm_case);

  bench::DeviceStream stream_;
  bench::DeviceCheck check_;
  bench::DeviceBuffer workspace_;
  Operand a_, b_;
  Memory dequantised_b_, c_, d_, bias_, groups_;
  double worst_ratio_ = 0;
};

std::string describe_failure(const GemmCase& gemm_case, const Plan& plan, const bench::CheckReport& report);

}  // namespace sluice::gpu_tests
