// Is a result right? Elementwise, against an independent reference in double precision.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/error.hpp"
#include "sluice/problem.hpp"
#include "sluice/run.hpp"

namespace sluice {

struct VerifyReport {
  std::int64_t checked = 0;
  std::int64_t wrong = 0;  // elements outside the bound
  std::int64_t not_a_number = 0;
  double worst_ratio = 0;  // largest |got - reference| / bound
  std::int64_t worst_row = -1, worst_column = -1, worst_batch = -1;
  double worst_got = 0, worst_reference = 0;

  bool ok() const { return wrong == 0 && not_a_number == 0; }
};

std::string to_string(const VerifyReport& report);

// Host memory. `c_before` is C as it was before the run; null means arguments.c, where that is not D itself.
// Bound of an element: gamma_k (|alpha| |A||B|) + rounding of the epilogue and of the output type, gamma_k = k u / (1 - k u) with
// u = 2^-23 (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1; one bit more than fp32's unit roundoff because the
// tensor cores truncate). GELU and SiLU may add 2^-19 |x|. Where everything is an integer and every sum stays below 2^24, fp32 makes no
// error at all and the bound is zero: only the reference, rounded to the output type, passes. Where the reference is infinite or NaN,
// the result must be so too. FP8 operands have bounds of their own, because the tensor cores add their products with fewer bits, and
// integers are exact while the absolute products of each 128 of K stay below 2^13: docs/numbers.md. A D in FP8 is what the bounds in fp32
// come to when they are divided by the scale and rounded; scales that were found are checked with it. `samples` of 0 checks every element,
// otherwise that many drawn from `seed`.
Result<VerifyReport> verify(const GemmProblem& problem, const GemmArguments& host_arguments, const void* c_before, std::int64_t samples = 0,
                            std::uint64_t seed = 1);

// Rounds to nearest even, as the GPU does. What is too large becomes infinity in bf16 and fp16, and the largest finite number, 448 or
// 57344, in e4m3 and e5m2. Exposed because users of the CLI and of tests convert files.
std::uint16_t to_bf16_bits(float value);
float from_bf16_bits(std::uint16_t bits);
std::uint16_t to_fp16_bits(float value);
float from_fp16_bits(std::uint16_t bits);
std::uint8_t to_e4m3_bits(float value);
float from_e4m3_bits(std::uint8_t bits);
std::uint8_t to_e5m2_bits(float value);
float from_e5m2_bits(std::uint8_t bits);

}  // namespace sluice
