// What a number belongs to: the GPU, its clocks, and the versions of everything.
#pragma once

#include <string_view>

#include "bench/report.hpp"

namespace sluice::bench {

Environment current_environment();  // without `after` and cuBLASLt's version
GpuState gpu_state();               // takes nvidia-smi about a second

// A line of `nvidia-smi --query-gpu=clocks.sm,clocks.mem,power.draw,temperature.gpu --format=csv,noheader,nounits`.
GpuState parse_gpu_state(std::string_view line);

}  // namespace sluice::bench
