// From a kernel's configuration to what a machine starts.
#pragma once

#include <cstddef>
#include <unordered_map>

#include "core/kernel_instances.hpp"

namespace sluice {

struct KernelConfigHash {
  std::size_t operator()(const KernelConfig& c) const {
    std::size_t hash = 0;
    for (int field : {static_cast<int>(c.type_a), static_cast<int>(c.type_b), static_cast<int>(c.layout_a), static_cast<int>(c.layout_b),
                      static_cast<int>(c.schedule), static_cast<int>(c.order), static_cast<int>(c.load), c.tile_m, c.tile_n, c.tile_k,
                      c.cluster_m, c.cluster_n, c.ctas_per_sm, static_cast<int>(c.scope)})
      hash = hash * 1000003 + static_cast<std::size_t>(field);
    return hash;
  }
};

enum class KernelSet { all, traced, general };

// Every kernel of the list, short ones too (or those with a recorder, or for general groups), by what entry.operator()<config>() gives. For
// a short one that is not in it, that of all scopes; null for a configuration that is not.
template <class Entry, KernelSet set = KernelSet::all>
class KernelMap {
 public:
  template <class F>
  explicit KernelMap(const F& entry) {
    const auto add = [&]<KernelConfig listed>() { entries_.emplace(listed, entry.template operator()<listed>()); };
    if constexpr (set == KernelSet::traced)
      for_each_traced_kernel(add);
    else if constexpr (set == KernelSet::general)
      for_each_general_kernel(add);
    else
      for_each_kernel(add), for_each_short_kernel(add);
  }
  Entry find(const KernelConfig& config) const {
    const auto found = entries_.find(config);
    if (found != entries_.end()) return found->second;
    return is_short(config) ? find(with_scope(config, KernelScope::all)) : nullptr;
  }

 private:
  std::unordered_map<KernelConfig, Entry, KernelConfigHash> entries_;
};

}  // namespace sluice
