// sluice plan: which kernel and schedule a product gets.
#include <fmt/core.h>

#include "plan_file.hpp"
#include "planning.hpp"
#include "session.hpp"

namespace sluice::cli {
namespace {

struct PlanFlags {
  PlanningFlags planning;
  std::string plans;
};

Outcome show_plan(const PlanFlags& flags, const Session& session) {
  Result<PlannedProblem> planned = make_plan(flags.planning, false);
  if (!planned) return planned.error();
  std::string source;
  if (!flags.plans.empty()) {
    Result<PlanFromFile> found = plan_from_file(flags.plans, planned->plan.problem, planned->plan.device);
    if (!found) return found.error();
    planned->plan = std::move(found->plan);
    source = fmt::format("plan     {}\n", found->why);
  }
  if (session.json)
    print_json(parse_json(to_json(planned->plan)));
  else
    fmt::print("{}\n{}{}", planned->device_line, source, to_string(planned->plan));
  return 0;
}

}  // namespace

void add_plan_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<PlanFlags>();
  CLI::App* command = add_command<PlanFlags>(
      app, session, "plan", "Choose a kernel and a schedule. With --json the answer can be kept and passed to --plan or --plan-file", flags,
      &show_plan);
  add_problem_flags(*command, flags->planning.problem, true);
  add_device_flag(*command, flags->planning.device);
  add_planner_flags(*command, flags->planning.planner);
  add_plans_flag(*command, flags->plans);
}

}  // namespace sluice::cli
