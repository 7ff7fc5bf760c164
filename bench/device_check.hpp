// Is a result in device memory right? Slow, independent arithmetic in double precision, one thread for each element of D. An FP8 operand
// is what its elements times their scales are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <cuda_runtime_api.h>

#include "bench/device_memory.hpp"
#include "bench/exactness.hpp"
#include "sluice/problem.hpp"
#include "sluice/run.hpp"

namespace sluice::bench {

inline constexpr int kWrongListed = 5;
inline constexpr int kPoisonByte = 0xff;  // NaN in every type

struct WrongElement {
  std::int64_t batch, row, column;
  double got, expected, bound;
};

// Plain data: the kernels write it in device memory.
struct CheckReport {
  unsigned long long checked = 0;
  unsigned long long wrong = 0;  // outside the bound, NaN included
  unsigned long long not_a_number = 0;
  unsigned long long written_outside = 0;  // bytes that do not belong to D and are no longer poison
  long long first_outside = 0;             // offset of one of them from D's first byte
  float worst_ratio = 0;                   // |got - expected| over the bound
  int listed = 0;                          // of `first`; may exceed kWrongListed
  WrongElement first[kWrongListed] = {};

  bool ok() const { return wrong == 0 && not_a_number == 0 && written_outside == 0; }
};

std::string to_string(const CheckReport& report);  // counts, and the first wrong elements
std::string describe_counts(const CheckReport& report);

// A report in device memory. The checks enqueue work that adds to it; `fetch` waits for the stream.
class DeviceCheck {
 public:
  explicit DeviceCheck(cudaStream_t stream);
  ~DeviceCheck();
  DeviceCheck(const DeviceCheck&) = delete;
  DeviceCheck& operator=(const DeviceCheck&) = delete;

  void reset();

  // D against the reference. `problem` must be validated, and of dense operands (with_dense_weights()); `c_before` is C as it was before
  // the run. `samples` of 0 checks every element.
  void against_reference(const GemmProblem& problem, const GemmArguments& arguments, const void* c_before, Exactness exactness,
                         std::int64_t samples = 0);

  // Two dense results of the same product, in bf16: |x - y| <= relative * max(|x|, |y|) + absolute.
  void against_result(const void* got, const void* expected, std::int64_t rows, std::int64_t columns, float relative, float absolute);

  // Every byte must be the same.
  void same_bytes(const void* got, const void* expected, std::size_t bytes);

  // All of `region` was poisoned before the run; what is not an element of D must still be. groups: as GemmArguments has them.
  void outside_untouched(const GemmProblem& problem, const std::int32_t* groups, const void* d, const std::byte* region,
                         std::size_t region_bytes);

  CheckReport fetch();

 private:
  cudaStream_t stream_;
  DeviceBuffer report_;
  CheckReport* host_ = nullptr;
};

}  // namespace sluice::bench
