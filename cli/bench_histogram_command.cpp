// sluice bench-histogram: histograms beside a streaming read of the same samples, on the GPU of this machine.
#include "gpu.hpp"
#include "session.hpp"

namespace sluice::cli {
namespace {

struct BenchHistogramFlags {
  HistogramBenchOptions options;
  std::optional<int> gpu;
};

Outcome run_bench_histogram(const BenchHistogramFlags& flags, const Session& session) {
  HistogramBenchOptions options = flags.options;
  options.json = session.json;
  if (Status s = check_folder_of(options.out); !s) return s.error();
  if (flags.gpu)
    if (Status s = select_gpu(*flags.gpu); !s) return s.error();
  return run_histogram_benchmark(options);
}

}  // namespace

void add_bench_histogram_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<BenchHistogramFlags>();
  HistogramBenchOptions& options = flags->options;
  CLI::App* command = add_command<BenchHistogramFlags>(app, session, "bench-histogram",
                                                       "Time histograms beside a streaming read of the same samples on this GPU", flags,
                                                       &run_bench_histogram);
  command->add_option("--case", options.filter, "Only cases with this text in their description, such as 'zipf' or '65536 bins'");
  command->add_option("--out", options.out, "A JSON file for every number");
  command->add_option("--seconds-per-case", options.seconds_per_case, "GPU time to aim at")->capture_default_str()->check(above_zero());
  command->add_option("--gpu", flags->gpu, "Use this GPU");
}

}  // namespace sluice::cli
