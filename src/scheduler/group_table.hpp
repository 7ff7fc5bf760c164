// All groups of a problem whose sizes are at hand, for those who replay its schedule on the CPU.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "scheduler/groups.hpp"

namespace sluice {

class GroupTable {
 public:
  GroupTable(const GemmProblem& problem, const std::int32_t* sizes, std::int32_t rows_per_cluster) {
    for (std::int32_t g = 0; g < static_cast<std::int32_t>(problem.batch); ++g) {
      const GroupRange rows = range_of_group(problem, sizes, g);
      const std::int32_t cluster_rows = cluster_rows_of(rows, rows_per_cluster);
      if (cluster_rows > 0) groups_.push_back({g, cluster_rows_, cluster_rows, rows});
      cluster_rows_ += cluster_rows;
    }
  }

  std::int32_t cluster_rows() const { return cluster_rows_; }

  // `schedule`: that of a plan, with_cluster_rows().
  WorkTile place(const SchedulerParams& schedule, const TilePiece& piece) const {
    const std::int32_t row = cluster_row_of(schedule, piece);
    const auto behind = std::upper_bound(groups_.begin(), groups_.end(), row,
                                         [](std::int32_t value, const GroupTiles& group) { return value < group.first_cluster_row; });
    return place_in_group(schedule, piece, *(behind - 1));
  }

 private:
  std::vector<GroupTiles> groups_;  // that have rows
  std::int32_t cluster_rows_ = 0;
};

}  // namespace sluice
