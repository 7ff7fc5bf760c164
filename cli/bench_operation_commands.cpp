// sluice bench-quantize, bench-pack, bench-histogram and bench-attention: operations other than products, each beside a copy or a streaming
// read of the same bytes, on the GPU of this machine.
#include "gpu.hpp"
#include "session.hpp"

namespace sluice::cli {
namespace {

struct BenchOperationFlags {
  BenchedOperation operation;
  OperationBenchOptions options;
  std::optional<int> gpu;
};

Outcome run_bench_operation(const BenchOperationFlags& flags, const Session& session) {
  OperationBenchOptions options = flags.options;
  options.json = session.json;
  if (Status s = check_folder_of(options.out); !s) return s.error();
  if (flags.gpu)
    if (Status s = select_gpu(*flags.gpu); !s) return s.error();
  return run_operation_benchmark(flags.operation, options);
}

// examples: of texts in descriptions.
void add(CLI::App& app, Session& session, BenchedOperation operation, const std::string& name, const std::string& description,
         const std::string& examples) {
  const auto flags = std::make_shared<BenchOperationFlags>(BenchOperationFlags{.operation = operation, .options = {}, .gpu = {}});
  OperationBenchOptions& options = flags->options;
  CLI::App* command = add_command<BenchOperationFlags>(app, session, name, description, flags, &run_bench_operation);
  command->add_option("--case", options.filter, "Only cases with this text in their description, such as " + examples);
  command->add_option("--out", options.out, "A JSON file for every number");
  command->add_option("--seconds-per-case", options.seconds_per_case, "GPU time to aim at")->capture_default_str()->check(above_zero());
  command->add_option("--gpu", flags->gpu, "Use this GPU");
}

}  // namespace

void add_bench_quantize_command(CLI::App& app, Session& session) {
  add(app, session, BenchedOperation::quantize, "bench-quantize", "Time quantisation beside a copy of the same bytes on this GPU",
      "'bf16' or '128x128'");
}
void add_bench_pack_command(CLI::App& app, Session& session) {
  add(app, session, BenchedOperation::pack_w4, "bench-pack", "Time packing of 4-bit weights beside a copy on this GPU",
      "'gptq' or 'reordered'");
}
void add_bench_histogram_command(CLI::App& app, Session& session) {
  add(app, session, BenchedOperation::histogram, "bench-histogram",
      "Time histograms beside a streaming read of the same samples on this GPU", "'zipf' or '65536 bins'");
}
void add_bench_attention_command(CLI::App& app, Session& session) {
  add(app, session, BenchedOperation::attention, "bench-attention",
      "Time decode attention beside a streaming read of the same keys and values on this GPU", "'zipf' or '1 sequence'");
}

}  // namespace sluice::cli
