// sluice devices: the GPUs that plans can be made for, and those that are here.
#include <fmt/core.h>

#include "gpu.hpp"
#include "session.hpp"
#include "sluice/device.hpp"
#include "sluice/run.hpp"

namespace sluice::cli {
namespace {

struct DevicesFlags {};

constexpr double kMiB = 1 << 20;

void print_row(const DeviceSpec& device, const std::string& where) {
  fmt::print("{:<24} {:>4} {:>11} {:>8.0f} {:>6.3f} {:>9.0f} {:>9.0f} {:>14.0f}  {}\n", device.name, device.sm_count, device.clusters_of_2,
             static_cast<double>(device.l2_bytes) / kMiB, device.clock_ghz, device.hbm_gb_per_s, device.l2_gb_per_s,
             device.flops_per_clk_per_sm, where);
}

Outcome show_devices(const DevicesFlags&, const Session& session) {
  const Result<int> count = gpu_count();
  Json built_in = Json::array(), here = Json::array();
  if (!session.json)
    fmt::print("{:<24} {:>4} {:>11} {:>8} {:>6} {:>9} {:>9} {:>14}  {}\n", "device", "SMs", "2-clusters", "L2 MiB", "GHz", "HBM GB/s",
               "L2 GB/s", "flop/clk/SM", "where");
  for (const DeviceSpec& device : builtin_devices()) {
    built_in.push_back(parse_json(to_json(device)));
    if (!session.json) print_row(device, "built in");
  }
  for (int index = 0; count && index < *count; ++index) {
    const Status selected = select_gpu(index);
    const Result<DeviceSpec> device = selected ? current_device() : Result<DeviceSpec>(selected.error());
    if (device)
      here.push_back({{"index", index}, {"device", parse_json(to_json(*device))}});
    else
      here.push_back({{"index", index}, {"error", device.error().message}});
    if (session.json) continue;
    if (device)
      print_row(*device, fmt::format("GPU {}", index));
    else
      fmt::print("GPU {} cannot be used: {}\n", index, device.error().message);
  }
  const std::string none = !count ? count.error().message : "no GPU is visible";
  if (session.json)
    print_json({{"built_in", built_in}, {"gpus", here}, {"no_gpu_because", here.empty() ? Json(none) : Json(nullptr)}});
  else if (here.empty())
    fmt::print("No GPU here: {}\n", none);
  return 0;
}

}  // namespace

void add_devices_command(CLI::App& app, Session& session) {
  add_command<DevicesFlags>(app, session, "devices", "List the GPUs that plans can be made for, and those of this machine",
                            std::make_shared<DevicesFlags>(), &show_devices);
}

}  // namespace sluice::cli
