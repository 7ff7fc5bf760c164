// The kernels' own source, run on an emulated Hopper: slow, but on any CPU, and with an eye on every barrier. docs/emulator.md says what is
// modelled and what is not.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sluice/run.hpp"

namespace sluice {

// When asynchronous work (copies, wgmma) is carried out, of all the moments the architecture allows.
enum class Asynchrony : std::uint8_t {
  random,  // one of the others, drawn from the seed
  eager,   // almost at once
  lazy,    // only when nobody can go on without it
  mixed,   // in between, differently each time
};
const char* to_string(Asynchrony asynchrony);  // "random", "eager", "lazy", "mixed"
std::optional<Asynchrony> parse_asynchrony(std::string_view text);

struct EmulatorOptions {
  std::uint64_t seed = 0;  // the same seed, the same interleaving
  Asynchrony asynchrony = Asynchrony::random;
  // Clusters that run at once. Fewer than the plan's grid models SMs that something else holds. 0: as many as make four CTAs.
  int resident_clusters = 0;
  // Look for races and misuse in every access, not only for deadlocks and wrong results. Off, it takes about a third less time.
  bool diagnose = true;
};

// Runs the plan's kernel in host memory, in the calling thread. No result depends on time: only on the plan, the data and the options.
// Errors: those of run(); ErrorCode::emulation when the kernel does something wrong, with who, where and why, and how to see it again.
Status run_on_emulator(const Plan& plan, const GemmArguments& host_arguments, const EmulatorOptions& options = {},
                       const Progress& progress = {});

// About how long that takes.
double emulated_seconds(const Plan& plan);

// True if this build has the emulated kernels in it.
bool built_with_emulator();

}  // namespace sluice
