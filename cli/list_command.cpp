// sluice list: the kernels of this build.
#include <fmt/core.h>

#include "choices.hpp"
#include "session.hpp"
#include "sluice/kernel_config.hpp"
#include "sluice/kernel_list.hpp"

namespace sluice::cli {
namespace {

struct ListFlags {
  std::string type, layout, schedule;
};

struct Filter {
  std::optional<TypePair> types;
  std::optional<LayoutPair> layouts;
  std::optional<KernelSchedule> schedule;

  bool passes(const KernelConfig& kernel) const {
    return (!types || (kernel.type_a == types->a && kernel.type_b == types->b)) && (!schedule || kernel.schedule == *schedule) &&
           (!layouts || (kernel.layout_a == layouts->a && kernel.layout_b == layouts->b));
  }
};

Result<Filter> to_filter(const ListFlags& flags) {
  Filter filter;
  if (Status s = choose_into(filter.types, "--type", flags.type, &parse_type_pair, kInputTypes); !s) return s.error();
  if (Status s = choose_into(filter.layouts, "--layout", flags.layout, &parse_layout_pair, kLayouts); !s) return s.error();
  if (Status s = choose_into(filter.schedule, "--schedule", flags.schedule, &parse_kernel_schedule, kSchedules); !s) return s.error();
  return filter;
}

Json to_entry(const KernelConfig& kernel) {
  const KernelResources cta = resources(kernel);
  return {{"name", name(kernel)},
          {"type", words(kernel.type_a, kernel.type_b)},
          {"layout", letters(kernel.layout_a, kernel.layout_b)},
          {"schedule", to_string(kernel.schedule)},
          {"order", to_string(kernel.order)},
          {"load", to_string(kernel.load)},
          {"tile_m", kernel.tile_m},
          {"tile_n", kernel.tile_n},
          {"tile_k", kernel.tile_k},
          {"cluster_m", kernel.cluster_m},
          {"cluster_n", kernel.cluster_n},
          {"stages", cta.stages},
          {"shared_memory_bytes", cta.shared_memory_bytes},
          {"threads", cta.threads}};
}

Outcome show_kernels(const ListFlags& flags, const Session& session) {
  const Result<Filter> filter = to_filter(flags);
  if (!filter) return filter.error();
  Json kernels = Json::array();
  for (const KernelConfig& kernel : kernel_list())
    if (filter->passes(kernel)) kernels.push_back(to_entry(kernel));
  if (session.json) {
    print_json({{"kernels", kernels}});
    return 0;
  }
  fmt::print("{:<40} {:<9} {:<6} {:<11} {:>13} {:>7} {:>6} {:>10} {:>7}  {:<12} {}\n", "kernel", "type", "layout", "schedule", "tile",
             "cluster", "stages", "shared B", "threads", "wgmma rows", "loads by");
  for (const KernelConfig& kernel : kernel_list()) {
    if (!filter->passes(kernel)) continue;
    const KernelResources cta = resources(kernel);
    fmt::print("{:<40} {:<9} {:<6} {:<11} {:>13} {:>7} {:>6} {:>10} {:>7}  {:<12} {}\n", name(kernel), words(kernel.type_a, kernel.type_b),
               letters(kernel.layout_a, kernel.layout_b), to_string(kernel.schedule),
               fmt::format("{}x{}x{}", kernel.tile_m, kernel.tile_n, kernel.tile_k),
               fmt::format("{}x{}", kernel.cluster_m, kernel.cluster_n), cta.stages, cta.shared_memory_bytes, cta.threads,
               to_string(kernel.order), to_string(kernel.load));
  }
  fmt::print("{} kernels{}\n", kernels.size(), kernels.size() < kernel_list().size() ? fmt::format(" of {}", kernel_list().size()) : "");
  return 0;
}

}  // namespace

void add_list_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<ListFlags>();
  CLI::App* command = add_command<ListFlags>(app, session, "list", "List the kernels of this build", flags, &show_kernels);
  command->add_option("--type", flags->type, fmt::format("Only kernels of this type: {}", kInputTypes));
  command->add_option("--layout", flags->layout, fmt::format("Only kernels of this layout: {}", kLayouts));
  command->add_option("--schedule", flags->schedule, fmt::format("Only kernels of this schedule: {}", kSchedules));
}

}  // namespace sluice::cli
