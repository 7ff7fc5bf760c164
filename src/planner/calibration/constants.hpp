// THE list of the cost model's constants: their names in JSON, and the limits within which they are accepted and fitted.
#pragma once

#include <array>
#include <cstddef>

#include "sluice/calibration.hpp"

namespace sluice {

struct Constant {
  const char* name;
  double Calibration::*value;
  double least, most;
  bool fitted = true;
};

inline constexpr auto kConstants = std::to_array<Constant>({
    {"stage_overhead_clk_one_consumer", &Calibration::stage_overhead_clk_one_consumer, 0, 1000},
    {"stage_overhead_clk_cooperative", &Calibration::stage_overhead_clk_cooperative, 0, 1000},
    {"stage_overhead_clk_pingpong", &Calibration::stage_overhead_clk_pingpong, 0, 1000},
    {"matrix_cycles_factor", &Calibration::matrix_cycles_factor, 0.5, 2},
    {"ingest_bytes_per_clk_per_sm", &Calibration::ingest_bytes_per_clk_per_sm, 10, 1000},
    {"issue_clk_per_stage", &Calibration::issue_clk_per_stage, 0, 1000},
    {"issue_clk_per_box", &Calibration::issue_clk_per_box, 0, 1000},
    {"issue_clk_per_row_outside", &Calibration::issue_clk_per_row_outside, 0, 100},
    {"l2_factor", &Calibration::l2_factor, 0.2, 5},
    {"hbm_factor", &Calibration::hbm_factor, 0.3, 1.5},
    {"measured_hbm_gb_per_s_per_sm", &Calibration::measured_hbm_gb_per_s_per_sm, 0, 1000, false},
    {"launch_factor", &Calibration::launch_factor, 0, 5},
    {"ramp_us", &Calibration::ramp_us, 0, 10},
    {"early_fetch_us", &Calibration::early_fetch_us, 0, 10},
    // Only its ratios to the two that follow show in the times.
    {"store_bytes_per_clk_per_sm", &Calibration::store_bytes_per_clk_per_sm, 1, 1000, false},
    {"exposed_stores_cooperative", &Calibration::exposed_stores_cooperative, 0, 10},
    {"exposed_stores_pingpong", &Calibration::exposed_stores_pingpong, 0, 10},
    {"hand_over_us", &Calibration::hand_over_us, 0, 20},
    {"collect_bytes_per_clk_per_sm", &Calibration::collect_bytes_per_clk_per_sm, 1, 1000},
    {"separate_meeting_us", &Calibration::separate_meeting_us, 0, 20},
    {"leave_bytes_per_clk_per_sm", &Calibration::leave_bytes_per_clk_per_sm, 1, 1000},
    {"cluster_meeting_us", &Calibration::cluster_meeting_us, 0, 20},
    {"push_bytes_per_clk_per_sm", &Calibration::push_bytes_per_clk_per_sm, 1, 1000},
    {"stream_k_factor", &Calibration::stream_k_factor, 0.5, 2},
    {"overlap_exponent", &Calibration::overlap_exponent, 1, 16},
    {"throttle_us", &Calibration::throttle_us, 1, 1e4},
    {"throttle_factor", &Calibration::throttle_factor, 0, 10},
    {"traffic_throttle_us", &Calibration::traffic_throttle_us, 1, 1e5},
    {"traffic_throttle_factor", &Calibration::traffic_throttle_factor, 0, 10},
    {"traffic_free_share", &Calibration::traffic_free_share, 0, 10},
});
static_assert(offsetof(Calibration, kernel_factors) == kConstants.size() * sizeof(double), "a constant is missing in the list above");

inline constexpr double kLeastKernelFactor = 0.01, kMostKernelFactor = 100;

}  // namespace sluice
