#include "bench/environment.hpp"

#include <cstdio>
#include <cstdlib>
#include <ctime>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "bench/device_memory.hpp"
#include "sluice/version.hpp"

namespace sluice::bench {
namespace {

std::string first_line_of(const std::string& command) {
  std::FILE* const output = popen(command.c_str(), "r");
  if (output == nullptr) return "";
  char line[512] = "";
  const bool read = std::fgets(line, sizeof line, output) != nullptr;
  const bool good = pclose(output) == 0;
  std::string text = read && good ? line : "";
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

// By PCI address: CUDA and nvidia-smi number GPUs differently. Some machines keep the tool outside of PATH.
std::string ask_nvidia_smi(const std::string& fields) {
  int device = 0;
  char address[32] = "";
  check(cudaGetDevice(&device), "asking for the current device");
  check(cudaDeviceGetPCIBusId(address, sizeof address, device), "asking for the device's PCI address");
  const std::string options = fmt::format("--query-gpu={} --format=csv,noheader,nounits -i {} 2>/dev/null", fields, address);
  for (const char* tool : {"nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi", "/usr/bin/nvidia-smi"})
    if (const std::string line = first_line_of(fmt::format("{} {}", tool, options)); !line.empty()) return line;
  return "";
}

std::string cuda_version(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

std::string now() {
  const std::time_t time = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&time, &utc);
  char text[32] = "";
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

}  // namespace

GpuState gpu_state() { return parse_gpu_state(ask_nvidia_smi("clocks.sm,clocks.mem,power.draw,temperature.gpu")); }

Environment current_environment() {
  int device = 0, runtime = 0, driver = 0;
  cudaDeviceProp properties{};
  check(cudaGetDevice(&device), "asking for the current device");
  check(cudaGetDeviceProperties(&properties, device), "asking for the device's properties");
  check(cudaRuntimeGetVersion(&runtime), "asking for the CUDA runtime's version");
  check(cudaDriverGetVersion(&driver), "asking for the driver's version");
  const std::string smi_driver = ask_nvidia_smi("driver_version");
  // A binary carried to another machine keeps the commit it was built from; the variable is for builds outside of a checkout.
  const char* commit = std::getenv("SLUICE_COMMIT_ID");
  Environment environment;
  environment.gpu = properties.name;
  environment.sm_count = properties.multiProcessorCount;
  environment.driver = smi_driver.empty() ? fmt::format("for CUDA {}", cuda_version(driver)) : smi_driver;
  environment.cuda = cuda_version(runtime);
  environment.cublaslt = "not loaded";
  environment.sluice = version();
  environment.commit = commit != nullptr ? commit : SLUICE_COMMIT;
  if (environment.commit.empty()) environment.commit = "unknown";
  environment.date = now();
  environment.before = gpu_state();
  return environment;
}

}  // namespace sluice::bench
