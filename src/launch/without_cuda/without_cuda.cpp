// The launch room of a build without CUDA: the same calls, each of which says so.
#include <string>

#include "sluice/attention.hpp"
#include "sluice/device.hpp"
#include "sluice/histogram.hpp"
#include "sluice/quantize.hpp"
#include "sluice/run.hpp"
#include "sluice/trace.hpp"
#include "sluice/w4.hpp"

namespace sluice {
namespace {

Error no_cuda(const char* instead = "run_on_cpu") {
  return {ErrorCode::unsupported,
          std::string("this build of Sluice has no CUDA kernels; configure with -DSLUICE_CUDA=ON, or use ") + instead};
}

}  // namespace

bool built_with_cuda() { return false; }
Result<DeviceSpec> current_device() { return no_cuda(); }
Status prepare_workspace(void*, std::size_t, Stream) { return no_cuda(); }
Status run(const Plan&, const GemmArguments&, void*, std::size_t, Stream) { return no_cuda(); }
Status run_traced(const Plan&, const GemmArguments&, void*, std::size_t, TraceBuffer, Stream) { return no_cuda("run_traced_on_emulator"); }
Status quantize(const QuantizeProblem&, const QuantizeArguments&, Stream) { return no_cuda("quantize_on_cpu"); }
Status pack_w4(const PackW4Problem&, const PackW4Arguments&, Stream) { return no_cuda("pack_w4_on_cpu"); }
Status permute_columns(const PermuteColumnsProblem&, const void*, const std::int32_t*, void*, Stream) {
  return no_cuda("permute_columns_on_cpu");
}
Status histogram(const HistogramProblem&, const HistogramArguments&, Stream) { return no_cuda("histogram_on_cpu"); }
Status histogram(const HistogramPlan&, const HistogramArguments&, Stream) { return no_cuda("histogram_on_cpu"); }
Status prepare_attention_workspace(void*, std::size_t, Stream) { return no_cuda("attention_on_cpu"); }
Status attention(const AttentionPlan&, const AttentionArguments&, void*, std::size_t, Stream) { return no_cuda("attention_on_cpu"); }

}  // namespace sluice
