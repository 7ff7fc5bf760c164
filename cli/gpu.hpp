// The GPUs of this machine, for a tool that holds its matrices in host memory. gpu_cuda.cpp and gpu_none.cpp implement it.
#pragma once

#include <cstddef>
#include <string>

#include "bench/bench.hpp"
#include "bench/calibration.hpp"
#include "bench/operation_bench.hpp"
#include "bench/trace_operands.hpp"
#include "sluice/attention.hpp"
#include "sluice/error.hpp"
#include "sluice/histogram.hpp"
#include "sluice/plan.hpp"
#include "sluice/quantize.hpp"
#include "sluice/run.hpp"
#include "sluice/w4.hpp"

namespace sluice::cli {

Result<int> gpu_count();  // an error says why none can be used
Status select_gpu(int index);

struct OperandBytes {
  std::size_t a = 0, b = 0, c = 0, d = 0, bias = 0, scale_a = 0, scale_b = 0, scale_d = 0;
  bool finds_scales = false;  // scale_d is written
  std::size_t groups = 0;
};

struct GpuRun {
  double microseconds = 0;  // of one launch, in the mean of `launches` behind one another
  int launches = 0;
};

// Copies the operands to the current GPU, runs the plan, copies D back, and its scales if they were found. D starts as NaN there.
Result<GpuRun> run_on_gpu(const Plan& plan, const GemmArguments& host_arguments, const OperandBytes& bytes);

// run_bench() on the current GPU: its exit code, or why there is none.
Result<int> run_benchmark(const BenchOptions& options);

// Copies x and y to the current GPU, quantises, copies q and the scales back.
Status quantize_on_gpu(const QuantizeProblem& problem, const QuantizeArguments& host_arguments);

// Copies what is given to the current GPU, packs, copies the packed weights back.
Status pack_w4_on_gpu(const PackW4Problem& problem, const PackW4Arguments& host_arguments);

// Copies samples and counts to the current GPU, counts, copies the counts back.
Status histogram_on_gpu(const HistogramProblem& problem, const HistogramArguments& host_arguments);

// Copies operands to the current GPU (K and V have kv_bytes each), attends, copies O and the logarithms back.
Status attention_on_gpu(const AttentionProblem& problem, const AttentionArguments& host_arguments, std::size_t kv_bytes);

// Runs the plan's traced kernel and its plain one in turns.
Result<bench::TraceRun> trace_on_gpu(const Plan& plan);

// The same of run_operation_bench().
Result<int> run_operation_benchmark(BenchedOperation operation, const OperationBenchOptions& options);

// The same of run_calibration().
Result<int> run_calibrate(const CalibrationOptions& options);

}  // namespace sluice::cli
