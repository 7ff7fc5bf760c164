// Random schedules, problems and devices.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ostream>

#include <rapidcheck.h>

#include "sluice/sluice.hpp"

#include "scheduler/tile_order.hpp"

namespace sluice {

inline std::ostream& operator<<(std::ostream& out, const SchedulerParams& p) {
  return out << to_string(p.kind) << ' ' << to_string(p.raster) << ", tiles " << p.tiles_m << " x " << p.tiles_n << " x " << p.groups
             << ", k-tiles " << p.k_tiles << ", cluster " << p.cluster_m << " x " << p.cluster_n << ", cohort " << p.cohort << ", claim "
             << to_string(p.claim) << ", splits " << p.splits << " meeting in " << to_string(p.reduction) << ", lead " << p.lead
             << ", min k-tiles " << p.min_k_tiles << ", stream-K tiles " << p.stream_k_tiles << ", ranges " << p.stream_k_ranges
             << ", regions " << p.stream_k_regions;
}
inline std::ostream& operator<<(std::ostream& out, const WorkTile& t) {
  return out << "tile " << t.tile_m << ", " << t.tile_n << " of " << t.group << ", k-tiles " << t.k_begin << " to " << t.k_end << ", piece "
             << t.peer << " of " << t.peers << " at " << t.split_tile;
}

inline std::ostream& operator<<(std::ostream& out, DataType type) { return out << to_string(type); }
inline std::ostream& operator<<(std::ostream& out, Scaling scaling) { return out << to_string(scaling); }
inline std::ostream& operator<<(std::ostream& out, Layout layout) { return out << to_string(layout); }
inline std::ostream& operator<<(std::ostream& out, Bias bias) { return out << to_string(bias); }
inline std::ostream& operator<<(std::ostream& out, Activation activation) { return out << to_string(activation); }
inline std::ostream& operator<<(std::ostream& out, SchedulerKind kind) { return out << to_string(kind); }
inline std::ostream& operator<<(std::ostream& out, Rasterization raster) { return out << to_string(raster); }
inline std::ostream& operator<<(std::ostream& out, KernelSchedule schedule) {
  return out << (schedule == KernelSchedule::cooperative ? "cooperative" : "pingpong");
}
inline std::ostream& operator<<(std::ostream& out, const DeviceSpec& device) { return out << device.name; }

}  // namespace sluice

namespace rc {

template <>
struct Arbitrary<sluice::SchedulerParams> {
  static Gen<sluice::SchedulerParams> arbitrary() {
    return gen::map(gen::tuple(gen::inRange(1, 40), gen::inRange(1, 40), gen::inRange(1, 4), gen::inRange(0, 9), gen::inRange(1, 5),
                               gen::inRange(1, 5), gen::inRange(1, 12), gen::arbitrary<bool>()),
                    [](const auto& drawn) {
                      const auto& [clusters_m, clusters_n, groups, k_tiles, cluster_m, cluster_n, cohort, along_m] = drawn;
                      return sluice::SchedulerParams{.raster = along_m ? sluice::Rasterization::along_m : sluice::Rasterization::along_n,
                                                     .tiles_m = clusters_m * cluster_m,
                                                     .tiles_n = clusters_n * cluster_n,
                                                     .groups = groups,
                                                     .k_tiles = k_tiles,
                                                     .cluster_m = cluster_m,
                                                     .cluster_n = cluster_n,
                                                     .cohort = cohort};
                    });
  }
};

}  // namespace rc

namespace sluice::test {

// Sizes as they come up: small ones, powers of two and their neighbours, anything.
inline rc::Gen<std::int64_t> size(std::int64_t largest) {
  return rc::gen::oneOf(rc::gen::inRange<std::int64_t>(0, 70),
                        rc::gen::map(rc::gen::pair(rc::gen::inRange(0, 15), rc::gen::inRange(-1, 2)),
                                     [largest](const std::pair<int, int>& drawn) {
                                       return std::clamp<std::int64_t>((std::int64_t{1} << drawn.first) + drawn.second, 0, largest);
                                     }),
                        rc::gen::inRange<std::int64_t>(0, largest + 1));
}

// FP8 operands, which only come with K contiguous and in rows of 16 bytes, and their scales.
inline void make_fp8(GemmProblem& p) {
  p.type_a = *rc::gen::element(DataType::e4m3, DataType::e5m2);
  p.type_b = *rc::gen::element(DataType::e4m3, DataType::e5m2);
  p.layout_a = Layout::row_major, p.layout_b = Layout::column_major;
  p.alignment_a_bytes = p.alignment_b_bytes = 16;
  p.lda = (p.k + 15) / 16 * 16 + *rc::gen::element(16, 48);
  p.ldb = (p.k + 15) / 16 * 16 + 16;
  const auto scaling =
      rc::gen::element(Scaling::none, Scaling::per_tensor, Scaling::per_vector, Scaling::per_vector_128, Scaling::per_block_128);
  p.scaling_a = *scaling, p.scaling_b = *scaling;
  p.scale_layout_a = *rc::gen::element(Layout::row_major, Layout::column_major);
  p.scale_layout_b = *rc::gen::element(Layout::row_major, Layout::column_major);
  if (*rc::gen::arbitrary<bool>()) p.ld_scale_a = std::max(p.m, p.k / 128 + 1) + 1;
  if (*rc::gen::arbitrary<bool>()) p.batch_stride_scale_b = *rc::gen::element(0, 100000);
}

inline GemmProblem random_problem(std::int64_t largest) {
  GemmProblem p;
  p.m = *size(largest);
  p.n = *size(largest);
  p.k = *size(largest);
  p.batch = *rc::gen::weightedElement<std::int64_t>({{6, 1}, {1, 0}, {2, 2}, {1, 5}});
  p.type_a = p.type_b = *rc::gen::element(DataType::bf16, DataType::fp16);
  p.type_d = *rc::gen::element(DataType::bf16, DataType::fp16, DataType::fp32);
  p.layout_a = *rc::gen::element(Layout::row_major, Layout::column_major);
  p.layout_b = *rc::gen::element(Layout::row_major, Layout::column_major);
  p.alignment_a_bytes = *rc::gen::weightedElement<int>({{5, 16}, {1, 8}, {1, 2}});
  p.alignment_b_bytes = *rc::gen::weightedElement<int>({{5, 16}, {1, 4}, {1, 2}});
  // Leading dimensions that the tensor memory accelerator can address, every second time.
  if (*rc::gen::arbitrary<bool>()) {
    const auto rounded = [](std::int64_t extent) { return std::max<std::int64_t>(8, (extent + 7) / 8 * 8); };
    p.lda = rounded(p.layout_a == Layout::row_major ? p.k : p.m);
    p.ldb = rounded(p.layout_b == Layout::row_major ? p.n : p.k);
  }
  if (*rc::gen::inRange(0, 4) == 0) make_fp8(p);
  p.epilogue.alpha = *rc::gen::weightedElement<float>({{4, 1.0f}, {1, 0.0f}, {1, -2.0f}});
  p.epilogue.beta = *rc::gen::element(0.0f, 1.0f, 0.5f);
  p.epilogue.bias = *rc::gen::element(Bias::none, Bias::per_row, Bias::per_column, Bias::per_group_column);
  return p;
}

// Some scheduler, with parameters that suit any problem.
inline void choose_scheduler(PlanOptions& options) {
  options.scheduler = *rc::gen::element(SchedulerKind::one_tile_per_cta, SchedulerKind::data_parallel, SchedulerKind::split_k,
                                        SchedulerKind::stream_k, SchedulerKind::hybrid);
  options.claim = *rc::gen::element(WorkClaim::fixed, WorkClaim::ticket);
  if (*options.scheduler >= SchedulerKind::split_k) options.min_k_tiles = *rc::gen::element(0, 1, 2, 5);
}

inline DeviceSpec random_device() { return *rc::gen::elementOf(builtin_devices()); }

}  // namespace sluice::test
