#include "launch/registry.hpp"

#include <unordered_map>

#include "core/kernel_instances.hpp"
#include "kernel/kernel_entry.hpp"

namespace sluice {
namespace {

struct ConfigHash {
  std::size_t operator()(const KernelConfig& c) const {
    std::size_t hash = 0;
    for (int field :
         {static_cast<int>(c.type_ab), static_cast<int>(c.layout_a), static_cast<int>(c.layout_b), static_cast<int>(c.schedule),
          static_cast<int>(c.order), static_cast<int>(c.load), c.tile_m, c.tile_n, c.tile_k, c.cluster_m, c.cluster_n, c.ctas_per_sm})
      hash = hash * 1000003 + static_cast<std::size_t>(field);
    return hash;
  }
};

}  // namespace

const void* find_gemm_kernel(const KernelConfig& config) {
  static const std::unordered_map<KernelConfig, const void*, ConfigHash> entries = [] {
    std::unordered_map<KernelConfig, const void*, ConfigHash> all;
    for_each_kernel([&]<KernelConfig listed>() { all.emplace(listed, gemm_kernel_entry<listed>()); });
    return all;
  }();
  const auto found = entries.find(config);
  return found == entries.end() ? nullptr : found->second;
}

}  // namespace sluice
