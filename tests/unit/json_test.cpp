// Plans as JSON: there and back without loss, and every way a file can be wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "sluice/plan.hpp"

#include "random_plans.hpp"

namespace sluice {
namespace {

using Json = nlohmann::ordered_json;
using testing::pick;

Plan plan_for(const GemmProblem& problem, const PlanOptions& options = {}) {
  const Result<Plan> made = plan(problem, *find_device("h200"), options);
  EXPECT_TRUE(made.ok()) << made.error().message;
  return made.ok() ? *made : Plan{};
}

const Plan& small_plan() {
  static const Plan plan = plan_for({.m = 300, .n = 200, .k = 100}, {.keep_candidates = false});
  return plan;
}

void expect_refused(const std::string& text, ErrorCode code, const std::vector<std::string>& pieces) {
  const Result<Plan> back = plan_from_json(text);
  ASSERT_FALSE(back.ok()) << "accepted; expected '" << pieces.front() << "'";
  EXPECT_EQ(back.error().code, code) << back.error().message;
  for (const std::string& piece : pieces)
    EXPECT_NE(back.error().message.find(piece), std::string::npos) << "'" << piece << "' is not in: " << back.error().message;
}

Plan scaled_plan() {
  GemmProblem problem{.m = 300, .n = 256, .k = 272, .batch = 2, .type_a = DataType::e4m3, .type_b = DataType::e5m2};
  problem.scaling_a = Scaling::per_vector_128, problem.scaling_b = Scaling::per_block_128;
  problem.scale_layout_b = Layout::column_major;
  problem.ld_scale_a = 11, problem.batch_stride_scale_b = 0;
  return plan_for(problem, {.keep_candidates = false});
}

// A plan's JSON with the value at `pointer` replaced.
std::string with(const Plan& plan, const std::string& pointer, const Json& value) {
  Json json = Json::parse(to_json(plan));
  json[Json::json_pointer(pointer)] = value;
  return json.dump();
}
std::string with(const std::string& pointer, const Json& value) { return with(small_plan(), pointer, value); }

TEST(Json, RandomPlansReadBackEqual) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const Plan made = testing::random_plan(random);
    const std::string text = to_json(made);
    const Result<Plan> back = plan_from_json(text);
    ASSERT_TRUE(back.ok()) << back.error().message << "\nfor " << describe(made.problem);
    EXPECT_EQ(*back, made) << describe(made.problem);
    EXPECT_EQ(to_json(*back), text);
  }
}

TEST(Json, ScalesOfFp8Operands) {
  const Plan made = scaled_plan();
  const Json json = Json::parse(to_json(made))["problem"];
  EXPECT_EQ(json["type_a"], "e4m3");
  EXPECT_EQ(json["type_b"], "e5m2");
  EXPECT_EQ(json["scaling_a"], "1x128");
  EXPECT_EQ(json["scaling_b"], "128x128");
  EXPECT_EQ(json["scale_layout_a"], "row-major");
  EXPECT_EQ(json["scale_layout_b"], "column-major");
  EXPECT_EQ(json["ld_scale_a"], 11);
  EXPECT_EQ(json["ld_scale_b"], 2);
  EXPECT_EQ(json["batch_stride_scale_a"], 3300);
  EXPECT_EQ(json["batch_stride_scale_b"], 0);
  const Result<Plan> back = plan_from_json(to_json(made));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(*back, made);
}

TEST(Json, ScalesThatAreNoNumbersInJson) {
  Plan made = small_plan();
  made.problem.epilogue.alpha = std::numeric_limits<float>::infinity();
  made.problem.epilogue.beta = -std::numeric_limits<float>::infinity();
  const Result<Plan> back = plan_from_json(to_json(made));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(*back, made);
  made.problem.epilogue.alpha = std::numeric_limits<float>::quiet_NaN();
  const Result<Plan> not_a_number = plan_from_json(to_json(made));
  ASSERT_TRUE(not_a_number.ok()) << not_a_number.error().message;
  EXPECT_TRUE(std::isnan(not_a_number->problem.epilogue.alpha));
}

TEST(Json, APredictionChangedByHandIsKept) {
  const Result<Plan> back = plan_from_json(with("/predicted/total_us", 1.0 / 3.0));
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back->predicted.total_us, 1.0 / 3.0);
}

TEST(Json, NotJson) {
  expect_refused("", ErrorCode::bad_format, {"not JSON", "byte"});
  expect_refused("{", ErrorCode::bad_format, {"not JSON", "of 1"});
  expect_refused("\xff\xfe", ErrorCode::bad_format, {"not JSON"});
  expect_refused(std::string(100'000, '['), ErrorCode::bad_format, {"not JSON"});
  expect_refused("1e999999", ErrorCode::bad_format, {"JSON"});
  expect_refused("[]", ErrorCode::bad_format, {"object", "sluice-plan"});
  expect_refused("null", ErrorCode::bad_format, {"object"});
  expect_refused("{}", ErrorCode::bad_format, {"format", "version"});
}

TEST(Json, FormatAndVersion) {
  expect_refused(with("/format", "sluice-device"), ErrorCode::bad_format, {"format", "sluice-device", "sluice-plan"});
  expect_refused(with("/version", 2), ErrorCode::bad_format, {"version is 2", "reads version 1"});
  expect_refused(with("/version", "1"), ErrorCode::bad_format, {"version", "integer"});
}

TEST(Json, IllTypedFieldsAreNamedByTheirPath) {
  expect_refused(with("/problem/m", "many"), ErrorCode::bad_format, {"problem.m must be an integer", "\"many\""});
  expect_refused(with("/problem/m", 3.5), ErrorCode::bad_format, {"problem.m", "3.5"});
  expect_refused(with("/problem/m", std::uint64_t{1} << 63), ErrorCode::bad_format, {"problem.m", "out of range", "9223372036854775807"});
  expect_refused(with("/kernel/tile_m", std::int64_t{1} << 40), ErrorCode::bad_format, {"kernel.tile_m", "out of range", "2147483647"});
  expect_refused(with("/workspace_bytes", -1), ErrorCode::bad_format, {"workspace_bytes", "out of range", "0 and"});
  expect_refused(with("/problem/epilogue/alpha", nullptr), ErrorCode::bad_format, {"problem.epilogue.alpha must be a number", "null"});
  expect_refused(with("/problem/epilogue/alpha", 1e300), ErrorCode::bad_format, {"problem.epilogue.alpha", "out of range"});
  expect_refused(with("/problem/epilogue", 1), ErrorCode::bad_format, {"problem.epilogue must be an object"});
  expect_refused(with("/problem/type_d", "fp8"), ErrorCode::bad_format, {"problem.type_d", "bf16, fp16, fp32, e4m3, e5m2", "\"fp8\""});
  expect_refused(with("/problem/scaling_a", "rows"), ErrorCode::bad_format, {"problem.scaling_a", "none, tensor, vector, 1x128, 128x128"});
  expect_refused(with("/problem/layout_a", 0), ErrorCode::bad_format, {"problem.layout_a", "row-major, column-major"});
  expect_refused(with("/device/name", 5), ErrorCode::bad_format, {"device.name must be a string"});
  expect_refused(with("/candidates", Json::object()), ErrorCode::bad_format, {"candidates must be an array"});
  expect_refused(with("/candidates", {1}), ErrorCode::bad_format, {"candidates[0] must be an object"});
  expect_refused(with("/device/name", std::vector<std::string>(1000, "x")), ErrorCode::bad_format, {"not an array"});
}

TEST(Json, APathInsideACandidate) {
  Json json = Json::parse(to_json(plan_for({.m = 300, .n = 200, .k = 100})));
  json["candidates"][3]["kernel"]["schedule"] = "ponging";
  expect_refused(json.dump(), ErrorCode::bad_format,
                 {"candidates[3].kernel.schedule", "cooperative, pingpong, streaming, sliced-k", "\"ponging\""});
}

// Each field in turn, at every depth: taken away it is missed, and a stranger beside it is refused.
void for_each_object(const Json& json, const Json::json_pointer& at, const std::function<void(const Json::json_pointer&)>& visit) {
  if (!json.is_object()) return;
  visit(at);
  for (const auto& [name, value] : json.items()) for_each_object(value, at / name, visit);
}

std::string path_of(const Json::json_pointer& pointer, const std::string& name) {
  std::string path = (pointer / name).to_string().substr(1);
  std::replace(path.begin(), path.end(), '/', '.');
  return path;
}

TEST(Json, EveryFieldIsNeededAndNoOtherIsAllowed) {
  const Json whole = Json::parse(to_json(small_plan()));
  int fields = 0;
  for_each_object(whole, Json::json_pointer(), [&](const Json::json_pointer& object) {
    for (const auto& [name, unused] : whole[object].items()) {
      Json without = whole;
      without[object].erase(name);
      const bool header = name == "format" || name == "version";
      expect_refused(without.dump(), ErrorCode::bad_format, {header ? name : path_of(object, name) + " is missing"});
      ++fields;
    }
    Json more = whole;
    more[object]["surprise"] = 1;
    expect_refused(more.dump(), ErrorCode::bad_format, {path_of(object, "surprise"), "not a field", "remove it"});
  });
  EXPECT_GT(fields, 60);
}

// Carried out as they stand these would touch memory that is not theirs.
TEST(Json, PlansThatDoNotHangTogether) {
  expect_refused(with("/grid_ctas", 1000), ErrorCode::bad_format, {"grid_ctas = 1000", "make the plan again"});
  expect_refused(with("/worker_count", 1), ErrorCode::bad_format, {"worker_count = 1"});
  expect_refused(with("/shared_memory_bytes", 1024), ErrorCode::bad_format, {"shared_memory_bytes = 1024"});
  expect_refused(with("/workspace_bytes", 8), ErrorCode::bad_format, {"workspace_bytes = 8"});
  expect_refused(with("/scheduler/tiles_m", 99), ErrorCode::bad_format, {"scheduler.tiles_m = 99"});
  expect_refused(with("/scheduler/tiles_n", 99), ErrorCode::bad_format, {"scheduler.tiles_n = 99"});
  expect_refused(with("/scheduler/k_tiles", 1), ErrorCode::bad_format, {"scheduler.k_tiles = 1"});
  expect_refused(with("/scheduler/groups", 2), ErrorCode::bad_format, {"scheduler.groups = 2"});
  expect_refused(with("/scheduler/cluster_m", 0), ErrorCode::bad_format, {"scheduler.cluster_m = 0"});
  expect_refused(with("/scheduler/cohort", 0), ErrorCode::bad_format, {"scheduler.cohort = 0", "from 1 to"});
  expect_refused(with("/scheduler/cohort", 1000), ErrorCode::bad_format, {"scheduler.cohort = 1000"});
  expect_refused(with("/kernel/tile_m", 136), ErrorCode::unsupported, {"136x", "this build has no"});
  expect_refused(with("/problem/m", 100000), ErrorCode::bad_format, {"make the plan again"});
  expect_refused(with("/problem/lda", -1), ErrorCode::bad_format, {"problem.lda = -1"});
  expect_refused(with("/problem/lda", 99), ErrorCode::invalid_argument, {"lda = 99"});
  const Plan scaled = scaled_plan();
  for (const char* field : {"ld_scale_a", "ld_scale_b", "batch_stride_scale_a", "batch_stride_scale_b"})
    expect_refused(with(scaled, std::string("/problem/") + field, -1), ErrorCode::bad_format, {std::string("problem.") + field + " = -1"});
  expect_refused(with(scaled, "/problem/ld_scale_a", 2), ErrorCode::invalid_argument, {"ld_scale_a = 2"});
  expect_refused(with("/problem/type_a", "fp16"), ErrorCode::unsupported, {"type_a = fp16 with type_b = bf16"});
  Json other_types = Json::parse(with("/problem/type_a", "fp16"));
  other_types["problem"]["type_b"] = "fp16";
  expect_refused(other_types.dump(), ErrorCode::unsupported, {"no kernel"});
  expect_refused(with("/device/compute_capability", 80), ErrorCode::wrong_device, {"8.0"});
}

// Text changed at random places: refused, or read as a plan that hangs together. Nothing escapes, nothing crashes.
TEST(Json, CorruptedTexts) {
  std::mt19937 random(2);
  const std::string whole = to_json(small_plan());
  int accepted = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = whole;
    const int edits = pick(random, {1, 1, 2, 5});
    for (int e = 0; e < edits; ++e) {
      const auto at = std::uniform_int_distribution<std::size_t>(0, text.size() - 1)(random);
      switch (pick(random, {0, 1, 2, 3})) {
        case 0:
          text[at] = static_cast<char>(std::uniform_int_distribution<int>(0, 255)(random));
          break;
        case 1:
          text.erase(at, pick<std::size_t>(random, {1, 3, 50}));
          break;
        case 2:
          text.insert(at, 1, pick(random, {'0', '9', '-', '"', ',', '{', ']', '.', 'e'}));
          break;
        case 3:
          text.resize(at);
          break;
      }
      if (text.empty()) text = " ";
    }
    const Result<Plan> back = plan_from_json(text);
    if (back) {
      ++accepted;
      const Result<Plan> again = plan_from_json(to_json(*back));
      ASSERT_TRUE(again.ok()) << again.error().message;
    } else {
      EXPECT_FALSE(back.error().message.empty());
    }
  }
  EXPECT_LT(accepted, 1500) << "most damage must be noticed";
}

}  // namespace
}  // namespace sluice
