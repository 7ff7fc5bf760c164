// sluice plan: which kernel and schedule a product gets.
#include <fmt/core.h>

#include "planning.hpp"
#include "session.hpp"

namespace sluice::cli {
namespace {

Outcome show_plan(const PlanningFlags& flags, const Session& session) {
  const Result<PlannedProblem> planned = make_plan(flags, false);
  if (!planned) return planned.error();
  if (session.json)
    print_json(parse_json(to_json(planned->plan)));
  else
    fmt::print("{}\n{}", planned->device_line, to_string(planned->plan));
  return 0;
}

}  // namespace

void add_plan_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<PlanningFlags>();
  CLI::App* command = add_command<PlanningFlags>(
      app, session, "plan", "Choose a kernel and a schedule. With --json the answer can be kept and passed to --plan or --plan-file", flags,
      &show_plan);
  add_problem_flags(*command, flags->problem, true);
  add_device_flag(*command, flags->device);
  add_planner_flags(*command, flags->planner);
}

}  // namespace sluice::cli
