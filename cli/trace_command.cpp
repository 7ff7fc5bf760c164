// sluice trace: what every SM did, and when.
#include <algorithm>

#include <fmt/core.h>

#include "bench/trace_operands.hpp"
#include "choices.hpp"
#include "gemm_place.hpp"
#include "gpu.hpp"
#include "operands.hpp"
#include "planning.hpp"
#include "progress.hpp"
#include "session.hpp"
#include "sluice/trace.hpp"
#include "trace_page.hpp"

namespace sluice::cli {
namespace {

struct TraceFlags {
  PlanningFlags planning;
  PlaceFlags place;
  std::string out, html;
};

bool is_traced(const KernelConfig& kernel) {
  const std::vector<KernelConfig>& traced = traced_kernel_list();
  return std::find(traced.begin(), traced.end(), kernel) != traced.end();
}

// The planner's choice, or the best of its candidates whose kernel has a recorder.
struct TracedPlan {
  Plan plan;
  std::string device_line;
  std::string instead;  // in words: of which kernel; empty: of none
};
Result<TracedPlan> plan_to_trace(const TraceFlags& flags) {
  Result<PlannedProblem> planned = make_plan(flags.planning, true);
  if (!planned) return planned.error();
  const Plan& best = planned->plan;
  if (best.problem.grouping != Grouping::none)
    return Error{ErrorCode::unsupported,
                 "--grouping " + flags.planning.problem.grouping + " has sizes that only the device knows; trace a batch of their size"};
  if (is_empty(best.problem) || is_traced(best.kernel)) return TracedPlan{std::move(planned->plan), planned->device_line, ""};
  const auto found = std::find_if(best.candidates.begin(), best.candidates.end(), [](const Candidate& candidate) {
    return candidate.verdict == CandidateVerdict::slower && is_traced(candidate.kernel);
  });
  if (found == best.candidates.end()) {
    std::string names;
    for (const KernelConfig& kernel : traced_kernel_list()) names += (names.empty() ? "" : ", ") + name(kernel);
    return Error{ErrorCode::unsupported,
                 fmt::format("no kernel with a recorder computes this problem; the planner's choice is {}, and recorders have {}",
                             name(best.kernel), names)};
  }
  PlanningFlags again = flags.planning;
  again.planner.kernel = name(found->kernel);
  Result<PlannedProblem> traced = make_plan(again, false);
  if (!traced) return traced.error();
  std::string instead =
      fmt::format("instead of {}, which has no recorder and is predicted to take {:.2f} us", name(best.kernel), best.predicted.total_us);
  return TracedPlan{std::move(traced->plan), traced->device_line, std::move(instead)};
}

// Random numbers, as many as an operand has.
std::vector<std::byte> numbers(std::int64_t count, DataType type, std::uint64_t seed) {
  std::int64_t too_large = 0;
  Matrices drawn = random_matrices(0, count, 1, Layout::row_major, seed);
  return convert(std::move(drawn.data), NpyType::fp32, type, too_large);
}

Result<std::vector<std::byte>> trace_on_emulator(const Plan& plan, const EmulatorOptions& options) {
  const GemmProblem& p = plan.problem;
  const bench::OperandElems elems = bench::operand_elems(p);
  const std::vector<std::byte> a = numbers(elems.a, p.type_a, 1), b = numbers(elems.b, p.type_b, 2), c = numbers(elems.c, p.type_d, 3),
                               bias = numbers(elems.bias, bias_type(p.type_d), 4);
  const std::vector<float> scale_a(static_cast<std::size_t>(elems.scale_a), 1.0f), scale_b(static_cast<std::size_t>(elems.scale_b), 1.0f);
  std::vector<float> scale_d(static_cast<std::size_t>(elems.scale_d), 1.0f);
  std::vector<std::byte> d(static_cast<std::size_t>(elems.d) * static_cast<std::size_t>(size_bytes(p.type_d))), records(trace_bytes(plan));
  const GemmArguments arguments{.a = a.data(),
                                .b = b.data(),
                                .c = c.empty() ? nullptr : c.data(),
                                .d = d.data(),
                                .bias = bias.empty() ? nullptr : bias.data(),
                                .scale_a = scale_a.empty() ? nullptr : scale_a.data(),
                                .scale_b = scale_b.empty() ? nullptr : scale_b.data(),
                                .scale_d = scale_d.empty() ? nullptr : scale_d.data()};
  ProgressLine progress("tracing on the emulator:");
  if (Status s = run_traced_on_emulator(plan, arguments, {records.data(), records.size()}, options, progress.callback()); !s)
    return s.error();
  return records;
}

struct Run {
  std::vector<std::byte> records;
  std::vector<std::string> lines;
  Json json = Json::object();
};
Result<Run> run_traced_anywhere(const TraceFlags& flags, const Plan& plan) {
  const Result<WantedPlace> wanted = read_place(flags.place);
  if (!wanted) return wanted.error();
  const Place place = choose_place(flags.place, *wanted, [] {
    const BackendChoice choice = gpu_or_reference();
    return choice.backend == Backend::cuda ? choice : BackendChoice{Backend::emulator, choice.why};
  });
  if (place.backend == Backend::reference)
    return Error{ErrorCode::invalid_argument, "--backend reference runs no kernel that could be traced; choose from cuda, emulator"};
  Run run;
  run.json["backend"] = to_string(place.backend);
  if (place.backend == Backend::emulator) {
    Result<std::vector<std::byte>> records = trace_on_emulator(plan, wanted->emulator);
    if (!records) return records.error();
    run.records = std::move(*records);
    run.lines.push_back(fmt::format("ran {} ({}): 1000 steps of the emulator are drawn as a microsecond", place.text, place.why));
    return run;
  }
  Result<bench::TraceRun> measured = trace_on_gpu(plan);
  if (!measured) return measured.error();
  run.records = std::move(measured->records);
  if (!measured->same_bits)
    return Error{ErrorCode::internal, "the traced kernel's result differs from the plain one's; report this as a defect"};
  run.lines.push_back(fmt::format("ran {} ({}): a launch takes {:.2f} us, traced {:.2f} us ({:+.1f}%); predicted {:.2f} us", place.text,
                                  place.why, measured->plain_us, measured->traced_us, 100 * (measured->traced_us / measured->plain_us - 1),
                                  plan.predicted.total_us));
  run.json["plain_us"] = measured->plain_us;
  run.json["traced_us"] = measured->traced_us;
  run.json["predicted_launch_us"] = plan.predicted.total_us;
  return run;
}

std::vector<std::string> lines_about(const Trace& trace, const TraceSummary& summary) {
  std::vector<std::string> lines;
  lines.push_back(
      fmt::format("took     {:.2f} us from the first CTA's beginning to the last one's end, in {} work tiles, at most {} on a CTA",
                  trace.makespan_us, summary.tiles, summary.most_tiles_per_cta));
  std::string shares = "time    ";
  for (std::size_t i = 0; i < kTracePhases; ++i)
    if (summary.share[i] > 0) shares += fmt::format(" {} {:.1f}%,", to_string(static_cast<TracePhase>(i)), 100 * summary.share[i]);
  shares.pop_back();
  lines.push_back(shares);
  lines.push_back(fmt::format("pauses   {:.2f} an SM between main loops, of {:.3f} us", summary.gaps_per_sm, summary.gap_us));
  if (!trace.emulated) {
    std::string parts = fmt::format("predict  {:.2f} us;", summary.predicted_us);
    for (const PartCompared& part : summary.parts)
      parts += fmt::format(" {} {:.2f} (measured {:.2f}),", part.name, part.predicted_us, part.measured_us);
    parts.pop_back();
    lines.push_back(parts + (summary.off.empty() ? "; within 5%" : "; most off: " + summary.off));
  }
  if (trace.lost_tiles > 0) lines.push_back(fmt::format("missing  {} tiles, for which the buffer had no room", trace.lost_tiles));
  return lines;
}

Outcome show_trace(const TraceFlags& flags, const Session& session) {
  for (const std::string& path : {flags.out, flags.html})
    if (!path.empty())
      if (Status s = check_folder_of(path); !s) return s.error();
  const Result<TracedPlan> traced = plan_to_trace(flags);
  if (!traced) return traced.error();
  const Plan& plan = traced->plan;
  if (is_empty(plan.problem))
    return Error{ErrorCode::invalid_argument, "there is nothing to compute, and so nothing to trace; pass --m, --n and --k above 0"};
  const Result<Run> run = run_traced_anywhere(flags, plan);
  if (!run) return run.error();
  const Result<Trace> trace = read_trace(plan, run->records.data(), run->records.size(), run->json["backend"] == "emulator");
  if (!trace) return trace.error();
  const TraceSummary summary = summarise(*trace, plan);
  std::vector<std::string> lines = {traced->device_line, fmt::format("plan     {}", trace->how)};
  if (!traced->instead.empty()) lines.push_back("         " + traced->instead);
  lines.insert(lines.end(), run->lines.begin(), run->lines.end());
  if (!flags.out.empty())
    if (Status s = write_text_file(flags.out, to_chrome_json(*trace)); !s) return s.error();
  if (!flags.html.empty()) {
    const Result<Simulation> simulation = simulate(plan);
    const std::string page = trace_page(*trace, summary, simulation ? std::optional(*simulation) : std::nullopt, run->lines);
    if (Status s = write_text_file(flags.html, page); !s) return s.error();
  }
  const std::vector<std::string> found = lines_about(*trace, summary);
  lines.insert(lines.end(), found.begin(), found.end());
  for (const std::string& path : {flags.out, flags.html})
    if (!path.empty()) lines.push_back("wrote " + path);
  Json answer = to_json(*trace, summary);
  answer.update(run->json);
  print_answer(session, answer, lines);
  return 0;
}

}  // namespace

void add_trace_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<TraceFlags>();
  CLI::App* command = add_command<TraceFlags>(
      app, session, "trace", "Record what every SM does and when, on a Hopper GPU or an emulated one, beside what was predicted", flags,
      &show_trace);
  command->add_option("-o,--output", flags->out, "A trace for ui.perfetto.dev or chrome://tracing (JSON)");
  command->add_option("--html", flags->html, "A page with the timeline, and where the time went");
  add_problem_flags(*command, flags->planning.problem, true);
  add_device_flag(*command, flags->planning.device);
  add_planner_flags(*command, flags->planning.planner);
  add_place_flags(*command, flags->place);
}

}  // namespace sluice::cli
