// Plan files: lists of plans that measurement chose. Each plan stands in the list as the document that to_json(plan) writes, and is read
// by plan_from_json(), which derives it again and so refuses what does not fit this build.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sluice/plan_cache.hpp"

namespace sluice {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "sluice-plans";
constexpr int kFormatVersion = 1;

Error bad(const std::string& what) { return {ErrorCode::bad_format, what}; }

// The field, or nothing: then `error` says what is wrong with it, unless something was wrong before.
class Fields {
 public:
  Fields(const Json& object, std::string path) : object_(object), path_(std::move(path)) {}

  const Json* find(const char* name) {
    const auto found = object_.is_object() ? object_.find(name) : object_.end();
    if (found != object_.end()) return &*found;
    fail(name, "is missing");
    return nullptr;
  }

  double microseconds(const char* name) {
    const Json* const value = find(name);
    if (value == nullptr) return 0;
    const double us = value->is_number() ? value->get<double>() : 0;
    if (!(us > 0) || !std::isfinite(us)) fail(name, "must be a time above 0");
    return us;
  }

  std::string text(const char* name) {
    const Json* const value = find(name);
    if (value != nullptr && !value->is_string()) fail(name, "must be a string");
    return value != nullptr && value->is_string() ? value->get<std::string>() : "";
  }

  int count(const char* name) {
    const Json* const value = find(name);
    if (value == nullptr) return 0;
    const bool fits = value->is_number_integer() && value->get<std::int64_t>() >= 1 && value->get<std::int64_t>() <= kMostSplits;
    if (!fits) fail(name, "must be an integer from 1 to " + std::to_string(kMostSplits));
    return fits ? value->get<int>() : 0;
  }

  void fail(const char* name, const std::string& what) {
    if (!failed()) error_ = bad(path_ + "." + name + " " + what);
  }
  bool failed() const { return !error_.message.empty(); }
  const Error& error() const { return error_; }

 private:
  static constexpr std::int64_t kMostSplits = 1 << 20;

  const Json& object_;
  std::string path_;
  Error error_;
};

Result<TunedPlan> read_one(const Json& json, const std::string& path) {
  TunedPlan tuned;
  Fields fields(json, path);
  tuned.measured_us = fields.microseconds("measured_us");
  const Json* const planner = fields.find("planner");
  const Json* const plan = fields.find("plan");
  if (fields.failed()) return fields.error();

  Fields chosen(*planner, path + ".planner");
  tuned.planner_kernel = chosen.text("kernel");
  const std::optional<SchedulerKind> kind = parse_scheduler(chosen.text("scheduler"));
  if (!kind) chosen.fail("scheduler", "is not known; `sluice plan --help` lists the schedulers");
  tuned.planner_scheduler = kind.value_or(SchedulerKind::data_parallel);
  tuned.planner_splits = chosen.count("splits");
  tuned.planner_us = chosen.microseconds("measured_us");
  if (chosen.failed()) return chosen.error();

  Result<Plan> read = plan_from_json(plan->dump(-1, ' ', false, Json::error_handler_t::replace));
  if (!read) return Error{read.error().code, path + ".plan: " + read.error().message};
  tuned.plan = std::move(*read);
  return tuned;
}

// Where in the file, and for what: "plans[3] (64 x 4096 x 4096)".
std::string path_of(const Json& plans, std::size_t i) {
  std::string path = "plans[" + std::to_string(i) + "]";
  const Json::json_pointer problem("/plan/problem");
  if (!plans[i].is_object() || !plans[i].contains(problem)) return path;
  std::string shape;
  for (const char* name : {"m", "n", "k"}) {
    const auto size = plans[i][problem].is_object() ? plans[i][problem].find(name) : plans[i][problem].end();
    if (size == plans[i][problem].end() || !size->is_number_integer()) return path;
    shape += (shape.empty() ? "" : " x ") + size->dump();
  }
  return path + " (" + shape + ")";
}

}  // namespace

std::string to_json(const std::vector<TunedPlan>& plans) {
  Json json = {{"format", kFormat}, {"version", kFormatVersion}, {"plans", Json::array()}};
  for (const TunedPlan& tuned : plans)
    json["plans"].push_back({{"measured_us", tuned.measured_us},
                             {"planner",
                              {{"kernel", tuned.planner_kernel},
                               {"scheduler", to_string(tuned.planner_scheduler)},
                               {"splits", tuned.planner_splits},
                               {"measured_us", tuned.planner_us}}},
                             {"plan", Json::parse(to_json(tuned.plan))}});
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<std::vector<TunedPlan>> tuned_plans_from_json(const std::string& text) try {
  const Json json = Json::parse(text);
  const auto is = [&](const char* name, const Json& value) { return json.is_object() && json.contains(name) && json[name] == value; };
  if (!is("format", kFormat) || !json.contains("plans") || !json["plans"].is_array())
    return bad(std::string("the document must be a JSON object with \"format\": \"") + kFormat +
               "\" and a list \"plans\", as `sluice tune` writes it");
  if (!is("version", kFormatVersion))
    return bad("the library reads version " + std::to_string(kFormatVersion) + " of plan files; make the file again with `sluice tune`");
  std::vector<TunedPlan> plans;
  for (std::size_t i = 0; i < json["plans"].size(); ++i) {
    Result<TunedPlan> one = read_one(json["plans"][i], path_of(json["plans"], i));
    if (!one) return one.error();
    plans.push_back(std::move(*one));
  }
  return plans;
} catch (const nlohmann::json::parse_error& e) {
  return bad("not JSON: at byte " + std::to_string(e.byte) + " of " + std::to_string(text.size()));
} catch (const nlohmann::json::exception& e) {
  return bad(std::string("not readable as JSON: ") + e.what());
}

}  // namespace sluice
