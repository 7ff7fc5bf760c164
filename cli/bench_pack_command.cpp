// sluice bench-pack: packing weights of 4 bits beside a copy of their codes, on the GPU of this machine.
#include "gpu.hpp"
#include "session.hpp"

namespace sluice::cli {
namespace {

struct BenchPackFlags {
  PackW4BenchOptions options;
  std::optional<int> gpu;
};

Outcome run_bench_pack(const BenchPackFlags& flags, const Session& session) {
  PackW4BenchOptions options = flags.options;
  options.json = session.json;
  if (Status s = check_folder_of(options.out); !s) return s.error();
  if (flags.gpu)
    if (Status s = select_gpu(*flags.gpu); !s) return s.error();
  return run_pack_w4_benchmark(options);
}

}  // namespace

void add_bench_pack_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<BenchPackFlags>();
  PackW4BenchOptions& options = flags->options;
  CLI::App* command = add_command<BenchPackFlags>(app, session, "bench-pack", "Time packing of 4-bit weights beside a copy on this GPU",
                                                  flags, &run_bench_pack);
  command->add_option("--case", options.filter, "Only cases with this text in their description, such as 'gptq' or 'reordered'");
  command->add_option("--out", options.out, "A JSON file for every number");
  command->add_option("--seconds-per-case", options.seconds_per_case, "GPU time to aim at")->capture_default_str()->check(above_zero());
  command->add_option("--gpu", flags->gpu, "Use this GPU");
}

}  // namespace sluice::cli
