// A build without CUDA.
#include "gpu.hpp"

namespace sluice::cli {
namespace {

Error no_cuda() { return {ErrorCode::unsupported, "this build of Sluice has no CUDA kernels; configure with -DSLUICE_CUDA=ON"}; }

}  // namespace

Result<int> gpu_count() { return no_cuda(); }
Status select_gpu(int) { return no_cuda(); }
Result<GpuRun> run_on_gpu(const Plan&, const GemmArguments&, const OperandBytes&) { return no_cuda(); }
Result<int> run_benchmark(const BenchOptions&) { return no_cuda(); }
Status quantize_on_gpu(const QuantizeProblem&, const QuantizeArguments&) { return no_cuda(); }
Status pack_w4_on_gpu(const PackW4Problem&, const PackW4Arguments&) { return no_cuda(); }
Status histogram_on_gpu(const HistogramProblem&, const HistogramArguments&) { return no_cuda(); }
Status attention_on_gpu(const AttentionProblem&, const AttentionArguments&, std::size_t) { return no_cuda(); }
Result<bench::TraceRun> trace_on_gpu(const Plan&) { return no_cuda(); }
Result<int> run_operation_benchmark(BenchedOperation, const OperationBenchOptions&) { return no_cuda(); }
Result<int> run_calibrate(const CalibrationOptions&) { return no_cuda(); }

}  // namespace sluice::cli
