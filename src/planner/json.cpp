// Plans and devices as JSON, there and back without loss: plan == plan_from_json(to_json(plan)).
//
// The structured bindings in fields() (planner/json_format.hpp) stop compiling when a structure grows a field that JSON would forget.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "sluice/device.hpp"
#include "sluice/plan.hpp"

#include "planner/json_format.hpp"
#include "scheduler/tile_order.hpp"

namespace sluice {
namespace {

constexpr std::string_view kPlanFormat = "sluice-plan", kDeviceFormat = "sluice-device";

}  // namespace

void fields(Either<Epilogue> auto& s, auto&& field) {
  auto& [alpha, beta, bias, activation] = s;
  field("alpha", alpha);
  field("beta", beta);
  field("bias", bias);
  field("activation", activation);
}

void fields(Either<W4Format> auto& s, auto&& field) {
  auto& [group_size, zero_points] = s;
  field("group_size", group_size);
  field("zero_points", zero_points);
}

void fields(Either<GemmProblem> auto& s, auto&& field) {
  auto& [m, n, k, batch, type_a, type_b, type_d, layout_a, layout_b, lda, ldb, ldc, ldd, batch_stride_a, batch_stride_b, batch_stride_c,
         batch_stride_d, alignment_a_bytes, alignment_b_bytes, alignment_d_bytes, constant_a, constant_b, scaling_a, scaling_b, scaling_d,
         scale_layout_a, scale_layout_b, scale_layout_d, ld_scale_a, ld_scale_b, ld_scale_d, batch_stride_scale_a, batch_stride_scale_b,
         batch_stride_scale_d, w4, grouping, expected_rows, most_rows, epilogue] = s;
  field("m", m);
  field("n", n);
  field("k", k);
  field("batch", batch);
  field("type_a", type_a);
  field("type_b", type_b);
  field("type_d", type_d);
  field("layout_a", layout_a);
  field("layout_b", layout_b);
  field("lda", lda);
  field("ldb", ldb);
  field("ldc", ldc);
  field("ldd", ldd);
  field("batch_stride_a", batch_stride_a);
  field("batch_stride_b", batch_stride_b);
  field("batch_stride_c", batch_stride_c);
  field("batch_stride_d", batch_stride_d);
  field("alignment_a_bytes", alignment_a_bytes);
  field("alignment_b_bytes", alignment_b_bytes);
  field("alignment_d_bytes", alignment_d_bytes);
  field("constant_a", constant_a);
  field("constant_b", constant_b);
  field("scaling_a", scaling_a);
  field("scaling_b", scaling_b);
  field("scale_layout_a", scale_layout_a);
  field("scale_layout_b", scale_layout_b);
  field("ld_scale_a", ld_scale_a);
  field("ld_scale_b", ld_scale_b);
  field("batch_stride_scale_a", batch_stride_scale_a);
  field("batch_stride_scale_b", batch_stride_scale_b);
  field("scaling_d", scaling_d, Scaling::none);
  field("scale_layout_d", scale_layout_d, Layout::row_major);
  field("ld_scale_d", ld_scale_d, std::int64_t{0});
  field("batch_stride_scale_d", batch_stride_scale_d, std::int64_t{0});
  field("w4", w4, W4Format{});
  field("grouping", grouping, Grouping::none);
  field("expected_rows", expected_rows, std::int64_t{0});
  field("most_rows", most_rows, std::int64_t{0});
  field("epilogue", epilogue);
}

void fields(Either<DeviceSpec> auto& s, auto&& field) {
  auto& [name, compute_capability, sm_count, clusters_of_2, shared_memory_per_cta_bytes, l2_bytes, clock_ghz, hbm_gb_per_s, l2_gb_per_s,
         flops_per_clk_per_sm, sustained_fraction, launch_us] = s;
  field("name", name);
  field("compute_capability", compute_capability);
  field("sm_count", sm_count);
  field("clusters_of_2", clusters_of_2);
  field("shared_memory_per_cta_bytes", shared_memory_per_cta_bytes);
  field("l2_bytes", l2_bytes);
  field("clock_ghz", clock_ghz);
  field("hbm_gb_per_s", hbm_gb_per_s);
  field("l2_gb_per_s", l2_gb_per_s);
  field("flops_per_clk_per_sm", flops_per_clk_per_sm);
  field("sustained_fraction", sustained_fraction);
  field("launch_us", launch_us);
}

void fields(Either<KernelConfig> auto& s, auto&& field) {
  auto& [type_a, type_b, layout_a, layout_b, schedule, order, load, tile_m, tile_n, tile_k, cluster_m, cluster_n, ctas_per_sm, scope] = s;
  static_cast<void>(scope);  // all, of every plan's kernel
  field("type_a", type_a);
  field("type_b", type_b);
  field("layout_a", layout_a);
  field("layout_b", layout_b);
  field("schedule", schedule);
  field("order", order);
  field("load", load);
  field("tile_m", tile_m);
  field("tile_n", tile_n);
  field("tile_k", tile_k);
  field("cluster_m", cluster_m);
  field("cluster_n", cluster_n);
  field("ctas_per_sm", ctas_per_sm);
}

void fields(Either<SchedulerParams> auto& s, auto&& field) {
  auto& [kind, raster, tiles_m, tiles_n, groups, k_tiles, cluster_m, cluster_n, cohort, claim, splits, reduction, lead, min_k_tiles,
         stream_k_tiles, stream_k_ranges, stream_k_regions] = s;
  field("kind", kind);
  field("raster", raster);
  field("tiles_m", tiles_m);
  field("tiles_n", tiles_n);
  field("groups", groups);
  field("k_tiles", k_tiles);
  field("cluster_m", cluster_m);
  field("cluster_n", cluster_n);
  field("cohort", cohort);
  const SchedulerParams whole;  // of whole tiles in fixed turn, as all plans were once
  field("claim", claim, whole.claim);
  field("splits", splits, whole.splits);
  field("reduction", reduction, whole.reduction);
  field("lead", lead, whole.lead);
  field("min_k_tiles", min_k_tiles, whole.min_k_tiles);
  field("stream_k_tiles", stream_k_tiles, whole.stream_k_tiles);
  field("stream_k_ranges", stream_k_ranges, whole.stream_k_ranges);
  field("stream_k_regions", stream_k_regions, whole.stream_k_regions);
}

void fields(Either<PredictedTime> auto& s, auto&& field) {
  auto& [launch_us, matrix_us, hbm_us, l2_us, ramp_us, exposed_epilogue_us, reduction_us, learnt_us, power_us, total_us, waves,
         useful_share, busy_share] = s;
  field("launch_us", launch_us);
  field("matrix_us", matrix_us);
  field("hbm_us", hbm_us);
  field("l2_us", l2_us);
  field("ramp_us", ramp_us);
  field("exposed_epilogue_us", exposed_epilogue_us);
  field("reduction_us", reduction_us);
  field("learnt_us", learnt_us, 0.0);
  field("power_us", power_us, 0.0);
  field("total_us", total_us);
  field("waves", waves);
  field("useful_share", useful_share);
  field("busy_share", busy_share);
}

void fields(Either<Candidate> auto& s, auto&& field) {
  auto& [kernel, scheduler, predicted, verdict] = s;
  field("verdict", verdict);
  field("kernel", kernel);
  field("scheduler", scheduler);
  field("predicted", predicted);
}

void fields(Either<Plan> auto& s, auto&& field) {
  auto& [problem, device, kernel, scheduler, grid_ctas, worker_count, shared_memory_bytes, workspace_bytes, predicted, candidates] = s;
  field("problem", problem);
  field("device", device);
  field("kernel", kernel);
  field("scheduler", scheduler);
  field("grid_ctas", grid_ctas);
  field("worker_count", worker_count);
  field("shared_memory_bytes", shared_memory_bytes);
  field("workspace_bytes", workspace_bytes);
  field("predicted", predicted);
  field("candidates", candidates);
}

namespace {

// What the file says of the choices that split-K, stream-K and hybrid leave open.
Status choose_cuts(const SchedulerParams& s, PlanOptions& options) {
  const auto positive = [](const char* name, int value) -> Status {
    if (value >= 1) return Nothing{};
    return Error{ErrorCode::bad_format, std::string("scheduler.") + name + " = " + std::to_string(value) + " must be at least 1"};
  };
  if (Status r = positive("splits", s.splits); !r) return r;
  if (Status r = positive("min_k_tiles", s.min_k_tiles); !r) return r;
  if (Status r = positive("stream_k_regions", s.stream_k_regions); !r) return r;
  const SchedulerParams whole;
  options.claim = s.claim;
  if (s.kind == SchedulerKind::split_k || s.reduction != whole.reduction) options.reduction = s.reduction;
  if (s.kind == SchedulerKind::split_k || s.splits != whole.splits) options.splits = s.splits;
  if (s.min_k_tiles != whole.min_k_tiles) options.min_k_tiles = s.min_k_tiles;
  if (s.lead < 0) return Error{ErrorCode::bad_format, "scheduler.lead = " + std::to_string(s.lead) + " must not be negative"};
  if (s.kind == SchedulerKind::split_k || s.lead != 0) options.lead = s.lead > 0 ? s.lead : -1;
  if (s.stream_k_regions != whole.stream_k_regions) options.stream_k_regions = s.stream_k_regions;
  return Nothing{};
}

// A plan is carried out as it stands, so one whose grid or tiles do not belong to its problem would read and write out of bounds.
// What the planner derives from problem, device and kernel is derived again; only the choices themselves are taken from the file.
Status check_consistent(const Plan& read) {
  const bool empty = is_empty(read.problem);
  PlanOptions options{.scheduler = read.scheduler.kind, .raster = read.scheduler.raster, .keep_candidates = false};
  if (!empty) {
    if (Status s = choose_cuts(read.scheduler, options); !s) return s;
    options.kernel_name = name(read.kernel);
    if (std::find(kernel_list().begin(), kernel_list().end(), read.kernel) == kernel_list().end())
      return Error{ErrorCode::unsupported, "kernel: this build has no " + options.kernel_name + "; make the plan again with it"};
  }
  Result<Plan> derived = plan(read.problem, read.device, options);
  if (!derived) return derived.error();

  const auto mismatch = [](const std::string& path, auto found, auto expected) -> Status {
    return Error{ErrorCode::bad_format, path + " = " + std::to_string(found) +
                                            " does not belong to this problem, device and kernel, which need " + std::to_string(expected) +
                                            "; make the plan again"};
  };
  Status status = Nothing{};
  const auto same = [&](const std::string& path, auto found, auto expected) {
    if (status && found != expected) status = mismatch(path, found, expected);
  };
  const GemmProblem &p = read.problem, &q = derived->problem;
  same("problem.lda", p.lda, q.lda);
  same("problem.ldb", p.ldb, q.ldb);
  same("problem.ldc", p.ldc, q.ldc);
  same("problem.ldd", p.ldd, q.ldd);
  same("problem.batch_stride_a", p.batch_stride_a, q.batch_stride_a);
  same("problem.batch_stride_b", p.batch_stride_b, q.batch_stride_b);
  same("problem.batch_stride_c", p.batch_stride_c, q.batch_stride_c);
  same("problem.batch_stride_d", p.batch_stride_d, q.batch_stride_d);
  same("problem.ld_scale_a", p.ld_scale_a, q.ld_scale_a);
  same("problem.ld_scale_b", p.ld_scale_b, q.ld_scale_b);
  same("problem.batch_stride_scale_a", p.batch_stride_scale_a, q.batch_stride_scale_a);
  same("problem.batch_stride_scale_b", p.batch_stride_scale_b, q.batch_stride_scale_b);
  same("problem.ld_scale_d", p.ld_scale_d, q.ld_scale_d);
  same("problem.batch_stride_scale_d", p.batch_stride_scale_d, q.batch_stride_scale_d);
  same("grid_ctas", read.grid_ctas, derived->grid_ctas);
  same("worker_count", read.worker_count, derived->worker_count);
  same("shared_memory_bytes", read.shared_memory_bytes, derived->shared_memory_bytes);
  same("workspace_bytes", read.workspace_bytes, derived->workspace_bytes);
  const SchedulerParams &s = read.scheduler, &t = derived->scheduler;
  same("scheduler.tiles_m", s.tiles_m, t.tiles_m);
  same("scheduler.tiles_n", s.tiles_n, t.tiles_n);
  same("scheduler.groups", s.groups, t.groups);
  same("scheduler.k_tiles", s.k_tiles, t.k_tiles);
  same("scheduler.cluster_m", s.cluster_m, t.cluster_m);
  same("scheduler.cluster_n", s.cluster_n, t.cluster_n);
  same("scheduler.stream_k_tiles", s.stream_k_tiles, t.stream_k_tiles);
  same("scheduler.stream_k_ranges", s.stream_k_ranges, t.stream_k_ranges);
  if (!status || empty) return status;
  const std::int32_t widest = s.raster == Rasterization::along_m ? clusters_n(s) : clusters_m(s);
  if (s.cohort < 1 || s.cohort > widest)
    return Error{ErrorCode::bad_format, "scheduler.cohort = " + std::to_string(s.cohort) + " must be from 1 to the " +
                                            std::to_string(widest) + " clusters across the rasterization direction"};
  return status;
}

}  // namespace

std::string to_json(const Plan& plan) { return with_header(kPlanFormat, plan); }

Result<Plan> plan_from_json(const std::string& text) {
  Result<Plan> plan = parse_document<Plan>(text, kPlanFormat);
  if (!plan) return plan;
  if (Status s = check_consistent(*plan); !s) return s.error();
  return plan;
}

std::string to_json(const DeviceSpec& device) { return with_header(kDeviceFormat, device); }

Result<DeviceSpec> device_from_json(const std::string& text) {
  Result<DeviceSpec> device = parse_document<DeviceSpec>(text, kDeviceFormat);
  if (!device) return device;
  if (Status s = validate(*device); !s) return s.error();
  return device;
}

}  // namespace sluice
