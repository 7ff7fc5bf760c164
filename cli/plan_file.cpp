#include "plan_file.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "session.hpp"
#include "sluice/plan_cache.hpp"

namespace sluice::cli {

CLI::Option* add_plans_flag(CLI::App& command, std::string& path) {
  CLI::Option* const plans = command.add_option("--plans", path, "Take the plan from this file (of `sluice tune`) if it has one that fits");
  for (const char* flag : {"--schedule", "--scheduler", "--splits", "--regions", "--min-k-tiles", "--claim", "--raster", "--tile-m",
                           "--tile-n", "--kernel", "--calibration"})
    command.get_option(flag)->excludes(plans);
  return plans;
}

Result<PlanFromFile> plan_from_file(const std::string& path, const GemmProblem& problem, const DeviceSpec& device) {
  const Result<std::string> text = read_text_file(path);
  if (!text) return text.error();
  const Result<std::vector<TunedPlan>> tuned = tuned_plans_from_json(*text);
  if (!tuned) return Error{tuned.error().code, path + ": " + tuned.error().message};
  PlanCache cache;
  if (const Result<std::size_t> loaded = cache.load(*text); !loaded) return loaded.error();
  const Result<std::shared_ptr<const Plan>> got = cache.get(problem, device);
  if (!got) return got.error();

  PlanFromFile answer{.plan = **got};
  const auto is_it = [&](const TunedPlan& one) { return one.plan == answer.plan; };
  const auto found = std::find_if(tuned->rbegin(), tuned->rend(), is_it);  // the last of a question counts
  answer.tuned = found != tuned->rend();
  answer.why = answer.tuned ? fmt::format("tuned, from {}: {:.2f} us measured, {:.2f} us the planner's choice ({}, {})", path,
                                          found->measured_us, found->planner_us, found->planner_kernel, to_string(found->planner_scheduler))
                            : fmt::format("the planner's choice: none of the {} in {} is for this problem and device", tuned->size(), path);
  return answer;
}

}  // namespace sluice::cli
