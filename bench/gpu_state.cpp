#include <charconv>

#include "bench/environment.hpp"

namespace sluice::bench {

GpuState parse_gpu_state(std::string_view line) {
  GpuState state;
  for (std::optional<double>* field : {&state.sm_clock_mhz, &state.memory_clock_mhz, &state.power_w, &state.temperature_c}) {
    const std::size_t start = line.find_first_not_of(' ');
    if (start == std::string_view::npos) break;
    line.remove_prefix(start);
    double value = 0;
    if (std::from_chars(line.data(), line.data() + line.size(), value).ec == std::errc()) *field = value;  // "[N/A]" stays empty
    const std::size_t comma = line.find(',');
    line.remove_prefix(comma == std::string_view::npos ? line.size() : comma + 1);
  }
  return state;
}

}  // namespace sluice::bench
