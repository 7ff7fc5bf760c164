// sluice simulate: replay a plan on the CPU and draw who computes what, when.
#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/core.h>

#include "planning.hpp"
#include "session.hpp"
#include "sluice/simulate.hpp"

namespace sluice::cli {
namespace {

struct SimulateFlags {
  PlanningFlags planning;
  std::string plan_file, svg_file;
  int width = 100;
  int resident = 0;
  const CLI::App* command = nullptr;
};

// The product comes from flags or from a plan's file, not from both.
Status check_source(const SimulateFlags& flags) {
  if (flags.plan_file.empty()) {
    for (const char* flag : {"--m", "--n", "--k"})
      if (flags.command->count(flag) == 0)
        return Error{ErrorCode::invalid_argument, fmt::format("{} is missing; pass --m, --n and --k, or a plan's file with --plan", flag)};
    return Nothing{};
  }
  const std::array<std::string_view, 5> about_output = {"--plan", "--svg", "--width", "--json", "--resident"};
  for (const CLI::Option* option : flags.command->get_options()) {
    const bool about_plan = std::find(about_output.begin(), about_output.end(), option->get_name()) == about_output.end();
    if (option->count() > 0 && about_plan)
      return Error{ErrorCode::invalid_argument,
                   fmt::format("{} contradicts --plan, whose file holds the whole plan; leave one out", option->get_name())};
  }
  return Nothing{};
}

Result<PlannedProblem> plan_to_simulate(const SimulateFlags& flags) {
  if (flags.plan_file.empty()) return make_plan(flags.planning, false);
  const Result<std::string> text = read_text_file(flags.plan_file);
  if (!text) return text.error();
  Result<Plan> plan = plan_from_json(*text);
  if (!plan) return Error{plan.error().code, flags.plan_file + ": " + plan.error().message};
  const ChosenDevice device{plan->device, "from " + flags.plan_file};
  return PlannedProblem{std::move(*plan), device_line(device)};
}

Json summary(const Plan& plan, const Simulation& simulation) {
  Json answer = parse_json(to_json(simulation));
  answer["problem"] = describe(plan.problem);
  answer["device"] = plan.device.name;
  answer["kernel"] = plan.grid_ctas > 0 ? Json(name(plan.kernel)) : Json(nullptr);
  return answer;
}

Outcome show_simulation(const SimulateFlags& flags, const Session& session) {
  if (Status s = check_source(flags); !s) return s.error();
  const Result<PlannedProblem> planned = plan_to_simulate(flags);
  if (!planned) return planned.error();
  const Plan& plan = planned->plan;
  const Result<Simulation> simulation = simulate(plan, {.resident_units = flags.resident});
  if (!simulation) return simulation.error();
  if (!flags.svg_file.empty())
    if (Status s = write_text_file(flags.svg_file, to_svg(*simulation)); !s) return s.error();
  if (session.json) {
    print_json(summary(plan, *simulation));
  } else {
    fmt::print("{}\n{}", planned->device_line, to_text(*simulation, flags.width));
    if (!flags.svg_file.empty()) fmt::print("wrote {}\n", flags.svg_file);
  }
  const bool covered = simulation->uncovered_k_tiles == 0 && simulation->repeated_k_tiles == 0;
  if (covered) return 0;
  fmt::print(stderr, "sluice: the schedule is wrong: {} k-tiles are computed by nobody and {} more than once\n",
             simulation->uncovered_k_tiles, simulation->repeated_k_tiles);
  return kExitFailure;
}

}  // namespace

void add_simulate_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<SimulateFlags>();
  CLI::App* command = add_command<SimulateFlags>(app, session, "simulate",
                                                 "Replay a plan on the CPU: coverage, waves, utilisation, and the timeline of every SM",
                                                 flags, &show_simulation);
  flags->command = command;
  command->add_option("--plan", flags->plan_file, "Simulate the plan in this file (of `sluice plan --json`)");
  add_problem_flags(*command, flags->planning.problem, false);
  add_device_flag(*command, flags->planning.device);
  add_planner_flags(*command, flags->planning.planner);
  command
      ->add_option("--resident", flags->resident, "Clusters on the device at once, as when others hold the rest. Default: as many as fit")
      ->check(above_zero());
  command->add_option("--svg", flags->svg_file, "Draw the timeline into this file");
  command->add_option("--width", flags->width, "Columns of the text timeline")->capture_default_str()->check(CLI::Range(20, 1000));
}

}  // namespace sluice::cli
