// One shape after another: Sluice and its rivals made ready, checked, and timed in turn.
#pragma once

#include <memory>
#include <vector>

#include "bench/bench.hpp"
#include "bench/cublaslt.hpp"
#include "bench/device_check.hpp"
#include "bench/operands.hpp"
#include "bench/report.hpp"
#include "bench/timing.hpp"
#include "sluice/device.hpp"

namespace sluice::bench {

class Measurement {
 public:
  // `cublaslt` may be null: then there is nothing but the sampled reference to check against.
  Measurement(const BenchOptions& options, const std::vector<Shape>& shapes, const DeviceSpec& device,
              std::shared_ptr<const CublasLt> cublaslt);

  // A failure of Sluice ends up in `wrong`; what breaks the GPU or the rival is thrown.
  ShapeResult measure(const Shape& shape) { return measure(shape, problem_of(shape, options_)); }
  ShapeResult measure(const Shape& shape, const GemmProblem& problem);  // of the same sizes

 private:
  struct Product;  // a shape, its operands, and what cuBLASLt has to say about it

  Enqueue sluice_enqueue(const Product& product, const Plan& plan);
  std::string verify(const Product& product, const Plan& plan);
  void compute_reference(const Product& product);
  void warm_up(const std::vector<Graph>& graphs);
  void time_rivals(const Product& product, const Plan& plan, ShapeResult& result);
  void time_kernels(const Product& product, const Plan& plan, ShapeResult& result);
  void time_finalists(const Product& product, const std::vector<Plan>& plans, ShapeResult& result);
  cublasLtMatmulAlgo_t fastest_of(const Product& product, const std::vector<cublasLtMatmulAlgo_t>& algorithms);

  BenchOptions options_;
  DeviceSpec device_;
  std::shared_ptr<const CublasLt> cublaslt_;
  DeviceStream stream_;
  OperandArena arena_;
  DeviceBuffer workspace_;  // Sluice's: zero before the first launch, and never written by others
  DeviceBuffer cublaslt_workspace_;
  DeviceCheck check_;
  bool warm_ = false;
};

}  // namespace sluice::bench
