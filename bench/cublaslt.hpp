// cuBLASLt, loaded when the program runs: Sluice itself never links it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include "bench/operands.hpp"
#include "bench/suites.hpp"
#include "sluice/error.hpp"
#include "sluice/problem.hpp"

namespace sluice::bench {

struct CublasLtFunctions;

class CublasLt {
 public:
  // Fails with the places that were looked at.
  static Result<std::shared_ptr<const CublasLt>> load();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;
  ~CublasLt();

  std::string version() const;
  const CublasLtFunctions& functions() const { return *functions_; }
  cublasLtHandle_t handle() const { return handle_; }

 private:
  CublasLt() = default;
  std::unique_ptr<CublasLtFunctions> functions_;
  cublasLtHandle_t handle_ = nullptr;
};

enum class CublasLtReduction { any, in_fp32 };  // how partial sums of a split K may be brought together

// It has none for the product at hand.
struct NoAlgorithm : DeviceFailure {
  using DeviceFailure::DeviceFailure;
};

// D[m, n] = A[m, k] B[n, k]^T into bf16 with fp32 sums, of bf16, or of e4m3 with a scale for each row of A and 128 of K and for each 128
// columns of B and 128 of K. cuBLASLt thinks in columns: a row-major D is its transpose, so it is asked for D^T[n, m] = B[n, k] A[m, k]^T
// with m and n exchanged. How such scales must lie: cuBLAS 13, "128-element 1D and 128x128 2D Block Scaling For FP8 Data Types". Those of A
// with m contiguous, those of B with K contiguous and a multiple of 4 from one block of columns to the next; both start at multiples of 16
// bytes, and m and n are multiples of 4.
class CublasLtMatmul {
 public:
  static constexpr std::size_t kWorkspaceBytes = std::size_t{64} << 20;
  static constexpr int kAnswers = 16;  // among which the fastest is looked for

  // Of a validated problem. Throws NoAlgorithm where its shape is not for cuBLASLt.
  CublasLtMatmul(std::shared_ptr<const CublasLt> library, const GemmProblem& problem);
  ~CublasLtMatmul();
  CublasLtMatmul(const CublasLtMatmul&) = delete;
  CublasLtMatmul& operator=(const CublasLtMatmul&) = delete;

  // At most `count` answers, what cuBLASLt thinks fastest first. Throws NoAlgorithm where there are none.
  std::vector<cublasLtMatmulAlgo_t> heuristics(int count, CublasLtReduction reduction = CublasLtReduction::any) const;
  std::string describe(const cublasLtMatmulAlgo_t& algorithm) const;
  void enqueue(const cublasLtMatmulAlgo_t& algorithm, const OperandSet& set, void* workspace, cudaStream_t stream) const;

 private:
  void check(cublasStatus_t status, const char* doing) const;
  void describe_scales();
  void point_to_scales(const void* scale_a, const void* scale_b) const;

  std::shared_ptr<const CublasLt> library_;
  std::string shape_;
  bool scaled_ = false;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t layout_b_ = nullptr;
  cublasLtMatrixLayout_t layout_a_ = nullptr;
  cublasLtMatrixLayout_t layout_d_ = nullptr;
};

}  // namespace sluice::bench
