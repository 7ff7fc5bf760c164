#include "schedule_ways.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "scaled_cases.hpp"

namespace sluice::gpu_tests {
namespace {

KernelConfig kernel_named(const std::string& wanted) {
  const auto& list = kernel_list();
  const auto found = std::find_if(list.begin(), list.end(), [&](const KernelConfig& kernel) { return name(kernel) == wanted; });
  if (found == list.end()) throw std::runtime_error(wanted + " has left the list: choose another one like it");
  return *found;
}

struct Share {
  SchedulerKind kind;
  WorkClaim claim;
  int tiles_m, tiles_n;  // in clusters
  int splits = 0;
  Reduction reduction = Reduction::workspace;
  bool one_wave = false;  // as many tiles and as deep as to be dealt by place (core/launched_clusters.hpp), small or not
};

}  // namespace

std::vector<Way> all_ways(bool small) {
  using enum SchedulerKind;
  constexpr auto fixed = WorkClaim::fixed, ticket = WorkClaim::ticket;
  const std::array shares = {Share{data_parallel, fixed, 17, 19},
                             Share{data_parallel, ticket, 17, 19},
                             Share{data_parallel, fixed, 8, 16, 0, Reduction::workspace, true},
                             Share{split_k, fixed, 5, 11, 3},
                             Share{split_k, ticket, 5, 11, 3},
                             Share{split_k, fixed, 5, 11, 4, Reduction::separate},
                             Share{split_k, fixed, 1, 3, 8, Reduction::separate},
                             Share{split_k, fixed, 4, 4, 7},
                             Share{split_k, fixed, 4, 4, 7, Reduction::separate},
                             Share{split_k, fixed, 5, 11, 2, Reduction::cluster},
                             Share{split_k, fixed, 3, 4, 4, Reduction::cluster},
                             Share{stream_k, fixed, 7, 11},
                             Share{stream_k, ticket, 7, 11},
                             Share{hybrid, fixed, 17, 19},
                             Share{hybrid, ticket, 17, 19}};
  std::vector<Way> ways;
  for (const char* kernel_name : {"bf16_rc_coop_128x128x64_c1x1", "bf16_rc_coop_64x64x128_c2x1_swap", "bf16_rc_ping_64x64x64_c1x1",
                                  "bf16_rc_coop_32x64x128_c1x1_x2_swap", "e4m3_rc_coop_64x64x128_c1x1_swap"}) {
    const KernelConfig kernel = kernel_named(kernel_name);
    const bool meets = kernel.schedule == KernelSchedule::cooperative && cluster_size(kernel) == 1;
    for (const Share& share : shares) {
      if (share.reduction != Reduction::workspace && !meets) continue;
      Way way{.kernel = kernel};
      GemmCase& c = way.gemm_case;
      c.what = std::string(to_string(share.kind)) + ", " + to_string(share.claim);
      if (share.one_wave) c.what += ", one wave";
      if (share.kind == split_k) c.what += ", " + std::to_string(share.splits) + " pieces by " + to_string(share.reduction);
      const bool less = small && !share.one_wave;
      c.problem.m = std::int64_t{less ? (share.tiles_m + 4) / 5 : share.tiles_m} * kernel.tile_m * kernel.cluster_m - 3;
      c.problem.n = std::int64_t{less ? (share.tiles_n + 4) / 5 : share.tiles_n} * kernel.tile_n * kernel.cluster_n - 8;
      c.problem.k = less ? 1032 : small ? 1608 : 4104;
      c.options.scheduler = share.kind;
      c.options.claim = share.claim;
      if (share.kind == split_k) {
        c.options.splits = share.splits;
        c.options.reduction = share.reduction;
      }
      c = with_scales(std::move(c), kernel, 0);
      ways.push_back(std::move(way));
    }
  }
  return ways;
}

}  // namespace sluice::gpu_tests
