// A product on the emulator, which alone of all calls needs Boost.Context: it must come with the library, however that is linked.
#include <cstdint>
#include <cstdio>
#include <vector>

#include <sluice/sluice.hpp>

int main() {
  if (!sluice::built_with_emulator()) return std::puts("no emulator in this build") < 0;
  const auto plan = sluice::plan({.m = 32, .n = 48, .k = 64, .type_d = sluice::DataType::fp32}, *sluice::find_device("h10"));
  if (!plan) return 1;
  const std::vector<std::uint16_t> a(32 * 64, sluice::to_bf16_bits(0.5f)), b(64 * 48, sluice::to_bf16_bits(2.0f));
  std::vector<float> d(32 * 48);
  const sluice::Status status = sluice::run_on_emulator(*plan, {.a = a.data(), .b = b.data(), .d = d.data()}, {.seed = 1});
  std::printf("%s\n", status ? "emulated" : status.error().message.c_str());
  return status && d[0] == 64.0f && d.back() == 64.0f ? 0 : 1;
}
