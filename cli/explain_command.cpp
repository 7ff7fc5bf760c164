// sluice explain: every candidate of a plan, and why it lost.
#include <algorithm>

#include <fmt/core.h>

#include "explain_page.hpp"
#include "planning.hpp"
#include "session.hpp"

namespace sluice::cli {
namespace {

struct ExplainFlags {
  PlanningFlags planning;
  int most = 12;
  std::string html;
};

Outcome show_explanation(const ExplainFlags& flags, const Session& session) {
  Result<PlannedProblem> planned = make_plan(flags.planning, true);
  if (!planned) return planned.error();
  if (!flags.html.empty())
    if (Status s = write_text_file(flags.html, explain_page(planned->plan, flags.most)); !s) return s.error();
  if (session.json) {
    auto& candidates = planned->plan.candidates;
    candidates.resize(std::min(candidates.size(), static_cast<std::size_t>(flags.most)));
    print_json(parse_json(to_json(planned->plan)));
  } else {
    fmt::print("{}\n{}", planned->device_line, explain(planned->plan, flags.most));
    if (!flags.html.empty()) fmt::print("wrote {}\n", flags.html);
  }
  return 0;
}

}  // namespace

void add_explain_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<ExplainFlags>();
  CLI::App* command = add_command<ExplainFlags>(
      app, session, "explain", "Show every candidate with its predicted time, the parts of it, and why it lost", flags, &show_explanation);
  add_problem_flags(*command, flags->planning.problem, true);
  add_device_flag(*command, flags->planning.device);
  add_planner_flags(*command, flags->planning.planner);
  command->add_option("--most", flags->most, "Candidates to show at most")->capture_default_str()->check(above_zero());
  command->add_option("--html", flags->html, "The same as a page, with bars for the parts of the predicted time");
}

}  // namespace sluice::cli
