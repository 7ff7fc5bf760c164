#include <string>

#include "sluice/kernel_config.hpp"
#include "sluice/kernel_list.hpp"
#include "sluice/trace.hpp"

#include "core/general_groups.hpp"
#include "core/groups.hpp"
#include "core/kernel_instances.hpp"
#include "core/kernel_layout.hpp"
#include "core/tile_parts.hpp"

namespace sluice {

std::string name(const KernelConfig& config) {
  const auto letter = [](Layout layout) { return layout == Layout::row_major ? 'r' : 'c'; };
  std::string text = to_string(config.type_a);
  if (config.type_b != config.type_a) text += std::string("x") + to_string(config.type_b);
  text += "_";
  text += letter(config.layout_a);
  text += letter(config.layout_b);
  constexpr const char* kSchedules[] = {"_coop_", "_ping_", "_stream_", "_slice_"};
  text += kSchedules[static_cast<int>(config.schedule)];
  text += std::to_string(config.tile_m) + "x" + std::to_string(config.tile_n) + "x" + std::to_string(config.tile_k);
  text += "_c" + std::to_string(config.cluster_m) + "x" + std::to_string(config.cluster_n);
  if (config.ctas_per_sm > 1) text += "_x" + std::to_string(config.ctas_per_sm);
  if (config.order == OperandOrder::columns_of_b) text += "_swap";
  if (config.load == LoadPath::threads) text += "_anyalign";
  return text;
}

KernelResources resources(const KernelConfig& config) {
  const SharedMemoryLayout layout = shared_memory_layout(config);
  return {.stages = layout.stages,
          .shared_memory_bytes = layout.total_bytes,
          .threads = threads_per_cta(config),
          .joins_pieces = joins_pieces(config),
          .computes_groups = computes_groups(config),
          .computes_groups_along_k = computes_groups_along_k(config),
          .computes_general_groups = computes_general_groups(config)};
}

const std::vector<KernelConfig>& kernel_list() {
  static const std::vector<KernelConfig> list = [] {
    std::vector<KernelConfig> all;
    for_each_kernel([&]<KernelConfig config>() { all.push_back(config); });
    return all;
  }();
  return list;
}

const std::vector<KernelConfig>& traced_kernel_list() {
  static const std::vector<KernelConfig> list = [] {
    std::vector<KernelConfig> all;
    for_each_traced_kernel([&]<KernelConfig config>() { all.push_back(config); });
    return all;
  }();
  return list;
}

bool computes_general_groups(const KernelConfig& kernel) {
  bool listed = false;
  for_each_general_kernel([&]<KernelConfig config>() { listed = listed || config == kernel; });
  return listed;
}

}  // namespace sluice
