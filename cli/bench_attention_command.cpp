// sluice bench-attention: decode attention beside a streaming read of the same keys and values, on the GPU of this machine.
#include "gpu.hpp"
#include "session.hpp"

namespace sluice::cli {
namespace {

struct BenchAttentionFlags {
  AttentionBenchOptions options;
  std::optional<int> gpu;
};

Outcome run_bench_attention(const BenchAttentionFlags& flags, const Session& session) {
  AttentionBenchOptions options = flags.options;
  options.json = session.json;
  if (Status s = check_folder_of(options.out); !s) return s.error();
  if (flags.gpu)
    if (Status s = select_gpu(*flags.gpu); !s) return s.error();
  return run_attention_benchmark(options);
}

}  // namespace

void add_bench_attention_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<BenchAttentionFlags>();
  AttentionBenchOptions& options = flags->options;
  CLI::App* command = add_command<BenchAttentionFlags>(
      app, session, "bench-attention", "Time decode attention beside a streaming read of the same keys and values on this GPU", flags,
      &run_bench_attention);
  command->add_option("--case", options.filter, "Only cases with this text in their description, such as 'zipf' or '1 sequence'");
  command->add_option("--out", options.out, "A JSON file for every number");
  command->add_option("--seconds-per-case", options.seconds_per_case, "GPU time to aim at")->capture_default_str()->check(above_zero());
  command->add_option("--gpu", flags->gpu, "Use this GPU");
}

}  // namespace sluice::cli
