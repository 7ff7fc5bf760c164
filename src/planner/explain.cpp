// Says why a plan is as it is: the roofs over the problem, every candidate's predicted time in parts, and what each loser loses by.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sluice/plan.hpp"

#include "core/describe_scheduler.hpp"
#include "core/groups.hpp"
#include "core/kernel_layout.hpp"
#include "core/launched_clusters.hpp"
#include "planner/as_batch.hpp"
#include "planner/peak.hpp"
#include "planner/workers.hpp"

namespace sluice {
namespace {

double percent(double share) { return 100.0 * share; }

// The times below which no kernel can go on this device: each as if the others were free.
struct Roofs {
  double flops = 0;
  double bytes = 0;      // each operand once, the result once
  double matrix_us = 0;  // every SM multiplying, no padding, no idle wave
  double hbm_us = 0;
};

Roofs roofs_of(const Plan& plan) {
  const GemmProblem p = as_batch(plan.problem);  // predicted times are those of the rows that groups are expected to have
  const double m = static_cast<double>(p.m), n = static_cast<double>(p.n), batch = static_cast<double>(p.batch);
  const double k = p.epilogue.alpha == 0.0f ? 0.0 : static_cast<double>(p.k);
  const double batch_a = p.batch_stride_a == 0 ? 1 : batch, batch_b = p.batch_stride_b == 0 ? 1 : batch;
  const double outputs = m * n * (p.epilogue.beta != 0.0f ? 2 : 1) * batch;
  Roofs r;
  r.flops = flops(p);
  const double bytes_b = k == 0 ? 0 : static_cast<double>(matrix_bytes_b(p)) * batch_b;
  r.bytes = m * k * batch_a * size_bytes(p.type_a) + bytes_b + outputs * size_bytes(p.type_d);
  r.matrix_us = r.flops / (peak_tflop_per_s(plan.device, p.type_a) * 1e6);
  r.hbm_us = r.bytes / (plan.device.hbm_gb_per_s * 1e3);
  return r;
}

// What the main loop of a candidate takes: its slowest resource.
enum class Resource { matrix, hbm, l2 };
double main_us(const PredictedTime& t) { return std::max({t.matrix_us, t.hbm_us, t.l2_us}); }
Resource binding(const PredictedTime& t) {
  if (t.matrix_us >= t.hbm_us && t.matrix_us >= t.l2_us) return Resource::matrix;
  return t.hbm_us >= t.l2_us ? Resource::hbm : Resource::l2;
}

std::string describe(const SchedulerParams& s) { return fmt::format("{} {} cohort {}", describe_kind(s), to_string(s.raster), s.cohort); }

std::string engineering(double value, std::string_view unit) {
  constexpr std::array<std::pair<double, const char*>, 5> kScales{{{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}}};
  for (const auto& [scale, prefix] : kScales)
    if (value >= scale) return fmt::format("{:.3g} {}{}", value / scale, prefix, unit);
  return fmt::format("{:.3g} {}", value, unit);
}

std::string of_expected_groups(const GemmProblem& p) {
  if (is_grouped_along_k(p)) return fmt::format(" with about {} of K in each group", as_batch(p).k);
  if (is_general(p)) return fmt::format(" with about {} x {} x {} in each group", expected_rows(p), p.n, p.k);
  return is_grouped(p) ? fmt::format(" with about {} rows in each group", expected_rows(p)) : "";
}

std::string header(const Plan& plan) {
  const GemmProblem& p = plan.problem;
  const DeviceSpec& d = plan.device;
  std::string out = fmt::format("problem  {}\n", describe(p));
  const double peak = peak_tflop_per_s(d, p.type_a);
  out += fmt::format("device   {}: {} SMs at {:.4g} GHz, {} dense {}-bit, HBM {:.0f} GB/s, L2 {:.0f} GB/s, {} MiB of L2\n", d.name,
                     d.sm_count, d.clock_ghz, engineering(peak * 1e12, "FLOP/s"), 8 * size_bytes(p.type_a), d.hbm_gb_per_s, d.l2_gb_per_s,
                     d.l2_bytes >> 20);
  if (d.sustained_fraction < 1)
    out += fmt::format("         on long runs power allows {:.0f}% of the matrix rate\n", percent(d.sustained_fraction));
  if (is_empty(p)) return out;

  const Roofs r = roofs_of(plan);
  const double ridge = peak * 1e3 / d.hbm_gb_per_s;
  out += fmt::format("work     {}{}, {} if each operand moves once: {:.1f} FLOP/B; the device turns from memory to matrix at {:.0f}\n",
                     engineering(r.flops, "FLOP"), of_expected_groups(p), engineering(r.bytes, "B"), r.bytes > 0 ? r.flops / r.bytes : 0.0,
                     ridge);
  const PredictedTime& t = plan.predicted;
  const std::array<std::pair<const char*, double>, 3> roofs{{{"FLOP", r.matrix_us}, {"HBM", r.hbm_us}, {"L2", t.l2_us}}};
  const auto lowest = std::max_element(roofs.begin(), roofs.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  out += fmt::format("roofs    FLOP {:.2f} us, HBM {:.2f} us, L2 {:.2f} us with the chosen tiles: {} binds\n", r.matrix_us, r.hbm_us,
                     t.l2_us, lowest->first);
  return out;
}

std::string chosen_lines(const Plan& plan) {
  if (is_empty(plan.problem)) return "chosen   nothing to compute: no kernel is launched\n";
  const PredictedTime& t = plan.predicted;
  std::string out = fmt::format("chosen   {}, {}\n", name(plan.kernel), describe(plan.scheduler));
  out += fmt::format("         {}{} x {} tiles of {} x {}", is_grouped(plan.problem) || is_general(plan.problem) ? "at most " : "",
                     plan.scheduler.tiles_m, plan.scheduler.tiles_n, plan.kernel.tile_m, plan.kernel.tile_n);
  if (plan.scheduler.groups != 1) out += fmt::format(" in each of {} matrices", plan.scheduler.groups);
  out += fmt::format(", {} k-tiles of {}; {} CTAs of {} threads, {} stages, {} bytes of shared memory\n", plan.scheduler.k_tiles,
                     plan.kernel.tile_k, plan.grid_ctas, threads_per_cta(plan.kernel), shared_memory_layout(plan.kernel).stages,
                     plan.shared_memory_bytes);
  if (const int ctas = neighbours(plan.problem, plan.device, plan.kernel, plan.scheduler); ctas > 1)
    out += fmt::format("         launched as clusters of {}: neighbouring tiles{}, whose requests for the same lines meet\n", ctas,
                       plan.scheduler.splits > 1 ? "' pieces" : "");
  if (dealt_by_place(plan))
    out += "         dealt by place: neighbouring tiles to SMs of one GPC, whose requests for the same lines meet\n";
  const Roofs r = roofs_of(plan);
  out += fmt::format("         predicted {:.2f} us{}, {}", t.total_us, of_expected_groups(plan.problem),
                     engineering(t.total_us > 0 ? r.flops / t.total_us * 1e6 : 0, "FLOP/s"));
  if (t.total_us > 0) out += fmt::format(", {:.0f}% of the binding roof", percent(std::max({r.matrix_us, r.hbm_us}) / t.total_us));
  out += plan.workspace_bytes == 0 ? "; no workspace\n" : fmt::format("; workspace {} bytes\n", plan.workspace_bytes);
  return out;
}

// One cause of a candidate's delay behind the chosen one.
struct Cause {
  double us = 0;
  std::string words;
};

// The last wave, as "3 waves, the last 12% full".
std::string wave_words(const PredictedTime& t) {
  const double rounds = std::ceil(t.waves - 1e-9);
  const double last = t.waves - (rounds - 1);
  if (rounds <= 1) return fmt::format("keeps {:.0f}% of the SMs busy", percent(t.busy_share));
  if (last > 0.995) return fmt::format("{:.0f} waves keep {:.0f}% of the SMs busy", rounds, percent(t.busy_share));
  constexpr std::array kOrdinals{"second", "third", "fourth", "fifth"};
  const auto extra = static_cast<std::size_t>(rounds) - 2;
  const std::string which = extra < kOrdinals.size() ? std::string(kOrdinals[extra]) : fmt::format("{:.0f}th", rounds);
  return fmt::format("{} wave {:.0f}% full", which, std::max(1.0, percent(last)));
}

// The tensor cores' time is ideal / (useful * busy * rate): whichever factor is worse than the chosen one's gets its share, by
// logarithms, of the time that the matrix part is behind.
void add_matrix_causes(const Candidate& loser, const Candidate& winner, double behind_us, std::vector<Cause>& causes) {
  const PredictedTime &t = loser.predicted, &w = winner.predicted;
  if (behind_us <= 0 || t.matrix_us <= 0 || w.matrix_us <= 0 || t.useful_share <= 0 || t.busy_share <= 0) return;
  const double padding = std::log(w.useful_share / t.useful_share);
  const double idle = std::log(w.busy_share / t.busy_share);
  const double rate = std::log(t.matrix_us / w.matrix_us) - padding - idle;
  const double sum = std::max(0.0, padding) + std::max(0.0, idle) + std::max(0.0, rate);
  if (sum <= 0) return;
  if (padding > 0)
    causes.push_back({behind_us * padding / sum, fmt::format("{:.0f}% of the tiles is padding", percent(1 - t.useful_share))});
  if (idle > 0) causes.push_back({behind_us * idle / sum, wave_words(t)});
  if (rate > 0)
    causes.push_back({behind_us * rate / sum, fmt::format("tile {}x{} keeps the tensor cores {:.2f}x less busy", loser.kernel.tile_m,
                                                          loser.kernel.tile_n, std::exp(rate))});
}

// Parts overlap, but not for nothing: a longer one that does not bind costs something too.
void add_overlap_cause(const Candidate& loser, const Candidate& winner, std::vector<Cause>& causes) {
  const PredictedTime &t = loser.predicted, &w = winner.predicted;
  struct Part {
    const char* name;
    double us, chosen_us;
  };
  const std::array<Part, 3> parts{{{"matrix", t.matrix_us, w.matrix_us}, {"HBM", t.hbm_us, w.hbm_us}, {"L2", t.l2_us, w.l2_us}}};
  const Part& most =
      *std::max_element(parts.begin(), parts.end(), [](const Part& x, const Part& y) { return x.us - x.chosen_us < y.us - y.chosen_us; });
  if (most.us > most.chosen_us)
    causes.push_back(
        {most.us - most.chosen_us, fmt::format("{:.2f} us of {} beside it, the chosen one {:.2f}", most.us, most.name, most.chosen_us)});
}

void add_main_causes(const Candidate& loser, const Candidate& winner, std::vector<Cause>& causes) {
  const PredictedTime &t = loser.predicted, &w = winner.predicted;
  const double behind = main_us(t) - main_us(w);
  if (behind <= 0) return add_overlap_cause(loser, winner, causes);
  switch (binding(t)) {
    case Resource::matrix:
      return add_matrix_causes(loser, winner, behind, causes);
    case Resource::l2:
      if (t.l2_us > w.l2_us * 1.005 && w.l2_us > 0)
        causes.push_back({behind, fmt::format("fetches {:.2g}x the bytes through L2", t.l2_us / w.l2_us)});
      else
        causes.push_back({behind, "bound by L2"});
      return;
    case Resource::hbm:  // every candidate moves the same bytes: what differs is how fast its kernel was measured to
      causes.push_back({behind, w.hbm_us > 0
                                    ? fmt::format("measured {:.1f}% slower at the same bytes of HBM", percent(t.hbm_us / w.hbm_us - 1))
                                    : std::string("bound by HBM")});
      return;
  }
}

// Why a candidate that could run was not chosen: the causes that make up most of its delay, the largest first.
std::string why_it_lost(const Candidate& loser, const Candidate& winner) {
  const PredictedTime &t = loser.predicted, &w = winner.predicted;
  const double gap = t.total_us - w.total_us;
  constexpr double kTie = 1e-9;
  if (gap <= kTie * w.total_us)
    return t.l2_us > w.l2_us * 1.005 ? fmt::format("predicted equal, but fetches {:.2g}x the bytes through L2", t.l2_us / w.l2_us)
                                     : std::string("predicted equal; the chosen one stands earlier in the kernel list");

  std::vector<Cause> causes;
  add_main_causes(loser, winner, causes);
  if (t.exposed_epilogue_us > w.exposed_epilogue_us)
    causes.push_back(
        {t.exposed_epilogue_us - w.exposed_epilogue_us, fmt::format("{:.2f} us of epilogue not hidden", t.exposed_epilogue_us)});
  if (t.ramp_us > w.ramp_us) causes.push_back({t.ramp_us - w.ramp_us, fmt::format("{:.2f} us until the first wgmma", t.ramp_us)});
  if (t.reduction_us > w.reduction_us)
    causes.push_back(
        {t.reduction_us - w.reduction_us, fmt::format("{:.2f} us for bringing pieces together{}", t.reduction_us,
                                                      loser.scheduler.kind == SchedulerKind::hybrid ? " and what they fetch again" : "")});
  if (t.launch_us > w.launch_us) causes.push_back({t.launch_us - w.launch_us, fmt::format("launch takes {:.2f} us", t.launch_us)});
  if (t.learnt_us > w.learnt_us)
    causes.push_back({t.learnt_us - w.learnt_us,
                      fmt::format("measured times of their like say {:.2f} us more beside the chosen one", t.learnt_us - w.learnt_us)});
  if (t.power_us > w.power_us)
    causes.push_back({t.power_us - w.power_us, fmt::format("{:.2f} us more at the power limit", t.power_us - w.power_us)});
  std::stable_sort(causes.begin(), causes.end(), [](const Cause& a, const Cause& b) { return a.us > b.us; });

  constexpr double kWorthTelling = 0.25;  // of the gap
  constexpr std::size_t kMostCauses = 2;
  std::string words;
  for (std::size_t i = 0; i < causes.size() && i < kMostCauses; ++i)
    if (i == 0 || causes[i].us >= kWorthTelling * gap) words += (i == 0 ? "" : ", ") + causes[i].words;
  const double share = percent(gap / w.total_us);
  const std::string by =
      share < 1000 ? fmt::format("+{:.{}f}%: ", share, share < 10 ? 1 : 0) : fmt::format("{:.0f}x: ", t.total_us / w.total_us);
  return by + (words.empty() ? std::string("slower in several parts") : words);
}

// The part of the main loop that binds carries a star.
std::string part(double us, bool binds) { return fmt::format("{:.2f}{}", us, binds ? "*" : " "); }

std::string candidate_row(int rank, const Candidate& c, const Plan& plan) {
  const PredictedTime& t = c.predicted;
  const Resource bound = binding(t);
  return fmt::format(
      "{:>4}  {:<38} {:<42} {:>6} {:>7.2f} {:>5.0f}% {:>6.0f}% {:>9.2f} {:>7.2f} {:>9} {:>9} {:>9} {:>6.2f} {:>9.2f} {:>8.2f} {:>7.2f} "
      "{:>6.2f}  "
      "{}\n",
      rank, name(c.kernel), describe(c.scheduler), grid_ctas(worker_count(c.scheduler, plan.device, c.kernel), c.kernel), t.waves,
      percent(t.busy_share), percent(t.useful_share), t.total_us, t.launch_us, part(t.matrix_us, bound == Resource::matrix),
      part(t.hbm_us, bound == Resource::hbm), part(t.l2_us, bound == Resource::l2), t.ramp_us, t.reduction_us, t.exposed_epilogue_us,
      t.learnt_us, t.power_us, why(plan, c));
}

std::string candidate_table(const Plan& plan, const std::vector<const Candidate*>& able, int most) {
  std::string out =
      "\ntotal = launch + matrix, hbm and l2 overlapping (*: the longest) + ramp + reduction + epilogue + learnt + power, in "
      "microseconds\n";
  out += fmt::format("{:>4}  {:<38} {:<42} {:>6} {:>7} {:>6} {:>7} {:>9} {:>7} {:>9} {:>9} {:>9} {:>6} {:>9} {:>8} {:>7} {:>6}  {}\n",
                     "rank", "kernel", "schedule", "grid", "waves", "busy", "useful", "total", "launch", "matrix ", "hbm ", "l2 ", "ramp",
                     "reduction", "epilogue", "learnt", "power", "why");
  const std::size_t shown = std::min(able.size(), static_cast<std::size_t>(std::max(most, 1)));
  for (std::size_t i = 0; i < shown; ++i) out += candidate_row(static_cast<int>(i) + 1, *able[i], plan);
  if (shown < able.size())
    out += fmt::format("      and {} slower ones, up to {:.2f} us\n", able.size() - shown, able.back()->predicted.total_us);
  return out;
}

const char* verdict_words(CandidateVerdict verdict) {
  switch (verdict) {
    case CandidateVerdict::wrong_type:
      return "compiled for another type or layout";
    case CandidateVerdict::needs_aligned_operands:
      return "load through the tensor memory accelerator, and a pointer or stride of A or B is not a multiple of 16 bytes";
    case CandidateVerdict::cluster_does_not_fit:
      return "need a cluster that this device cannot hold";
    case CandidateVerdict::too_many_tiles:
      return "cut the output into more tiles than a schedule can count";
    case CandidateVerdict::shared_memory:
      return "need more shared memory than a CTA may have here";
    case CandidateVerdict::excluded_by_options:
      return "excluded by the plan's options";
    case CandidateVerdict::no_groups:
      return "cannot find out which tiles groups have, or not end where they end";
    case CandidateVerdict::few_rows_only:
      return "stream weights past one matrix of few rows of A; those for weights of 4 bits keep them all in shared memory, and take groups "
             "of 128 of K or whole columns";
    case CandidateVerdict::no_row_scales:
      return "cannot find scales for each 128 columns of D: no warpgroup of theirs holds all 128 of its rows";
    case CandidateVerdict::chosen:
    case CandidateVerdict::slower:
      break;
  }
  return "";
}

std::string unable_lines(const std::vector<Candidate>& candidates) {
  std::string out;
  for (const CandidateVerdict verdict :
       {CandidateVerdict::wrong_type, CandidateVerdict::needs_aligned_operands, CandidateVerdict::cluster_does_not_fit,
        CandidateVerdict::too_many_tiles, CandidateVerdict::shared_memory, CandidateVerdict::no_groups, CandidateVerdict::few_rows_only,
        CandidateVerdict::no_row_scales, CandidateVerdict::excluded_by_options}) {
    const auto count = std::count_if(candidates.begin(), candidates.end(), [verdict](const Candidate& c) { return c.verdict == verdict; });
    if (count > 0) out += fmt::format("{} kernel{}: {}\n", count, count == 1 ? "" : "s", verdict_words(verdict));
  }
  return out.empty() ? out : "\nnot considered\n" + out;
}

}  // namespace

std::string explain(const Plan& plan, int most) {
  std::string out = header(plan) + chosen_lines(plan);
  if (is_empty(plan.problem)) return out;
  if (plan.candidates.empty()) return out + "\nthe candidates were not kept with this plan; plan with keep_candidates to see them\n";
  std::vector<const Candidate*> able;
  for (const Candidate& c : plan.candidates)
    if (c.verdict == CandidateVerdict::chosen || c.verdict == CandidateVerdict::slower) able.push_back(&c);
  if (!able.empty()) out += candidate_table(plan, able, most);
  return out + unable_lines(plan.candidates);
}

std::string why(const Plan& plan, const Candidate& candidate) {
  if (candidate.verdict == CandidateVerdict::chosen) return "chosen";
  return plan.candidates.empty() ? "" : why_it_lost(candidate, plan.candidates.front());
}

std::string to_string(const Plan& plan) {
  return fmt::format("problem  {}\ndevice   {}\n", describe(plan.problem), plan.device.name) + chosen_lines(plan);
}

}  // namespace sluice
