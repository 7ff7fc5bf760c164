// sluice bench-quantize: quantisation beside a copy of the same bytes, on the GPU of this machine.
#include "gpu.hpp"
#include "session.hpp"

namespace sluice::cli {
namespace {

struct BenchQuantizeFlags {
  QuantizeBenchOptions options;
  std::optional<int> gpu;
};

Outcome run_bench_quantize(const BenchQuantizeFlags& flags, const Session& session) {
  QuantizeBenchOptions options = flags.options;
  options.json = session.json;
  if (Status s = check_folder_of(options.out); !s) return s.error();
  if (flags.gpu)
    if (Status s = select_gpu(*flags.gpu); !s) return s.error();
  return run_quantize_benchmark(options);
}

}  // namespace

void add_bench_quantize_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<BenchQuantizeFlags>();
  QuantizeBenchOptions& options = flags->options;
  CLI::App* command = add_command<BenchQuantizeFlags>(
      app, session, "bench-quantize", "Time quantisation beside a copy of the same bytes on this GPU", flags, &run_bench_quantize);
  command->add_option("--case", options.filter, "Only cases with this text in their description, such as 'bf16' or '128x128'");
  command->add_option("--out", options.out, "A JSON file for every number");
  command->add_option("--seconds-per-case", options.seconds_per_case, "GPU time to aim at")->capture_default_str()->check(above_zero());
  command->add_option("--gpu", flags->gpu, "Use this GPU");
}

}  // namespace sluice::cli
