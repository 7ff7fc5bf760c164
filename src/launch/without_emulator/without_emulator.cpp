// The emulator's calls in a build without it, each of which says so.
#include <string>

#include "sluice/attention.hpp"
#include "sluice/emulator.hpp"
#include "sluice/histogram.hpp"
#include "sluice/quantize.hpp"
#include "sluice/trace.hpp"
#include "sluice/w4.hpp"

namespace sluice {
namespace {

Error no_emulator(const char* instead) {
  return {ErrorCode::unsupported,
          std::string("this build of Sluice has no emulator; configure with -DSLUICE_EMULATOR=ON, or use ") + instead};
}

}  // namespace

bool built_with_emulator() { return false; }

Status run_on_emulator(const Plan&, const GemmArguments&, const EmulatorOptions&, const Progress&) { return no_emulator("run_on_cpu"); }
Status run_traced_on_emulator(const Plan&, const GemmArguments&, TraceBuffer, const EmulatorOptions&, const Progress&) {
  return no_emulator("run_traced");
}
Status quantize_on_emulator(const QuantizeProblem&, const QuantizeArguments&, const EmulatorOptions&) {
  return no_emulator("quantize_on_cpu");
}
Status pack_w4_on_emulator(const PackW4Problem&, const PackW4Arguments&, const EmulatorOptions&) { return no_emulator("pack_w4_on_cpu"); }
Status permute_columns_on_emulator(const PermuteColumnsProblem&, const void*, const std::int32_t*, void*, const EmulatorOptions&) {
  return no_emulator("permute_columns_on_cpu");
}
Status histogram_on_emulator(const HistogramProblem&, const HistogramArguments&, const EmulatorOptions&) {
  return no_emulator("histogram_on_cpu");
}
Status histogram_on_emulator(const HistogramPlan&, const HistogramArguments&, const EmulatorOptions&) {
  return no_emulator("histogram_on_cpu");
}
Status attention_on_emulator(const AttentionPlan&, const AttentionArguments&, const EmulatorOptions&) {
  return no_emulator("attention_on_cpu");
}

}  // namespace sluice
