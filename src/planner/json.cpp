// Plans and devices as JSON, there and back without loss: plan == plan_from_json(to_json(plan)).
//
// Each structure lists its fields once, in fields(), and both directions walk that list. The structured bindings there stop
// compiling when a structure grows a field that JSON would forget.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "sluice/device.hpp"
#include "sluice/plan.hpp"

#include "scheduler/tile_order.hpp"

namespace sluice {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kPlanFormat = "sluice-plan", kDeviceFormat = "sluice-device";
constexpr int kFormatVersion = 1;

// T, or const T when writing.
template <class S, class T>
concept Either = std::is_same_v<std::remove_const_t<S>, T>;

void fields(Either<Epilogue> auto& s, auto&& field) {
  auto& [alpha, beta, bias, activation] = s;
  field("alpha", alpha);
  field("beta", beta);
  field("bias", bias);
  field("activation", activation);
}

void fields(Either<GemmProblem> auto& s, auto&& field) {
  auto& [m, n, k, batch, type_ab, type_d, layout_a, layout_b, lda, ldb, ldc, ldd, batch_stride_a, batch_stride_b, batch_stride_c,
         batch_stride_d, alignment_a_bytes, alignment_b_bytes, alignment_d_bytes, constant_a, constant_b, epilogue] = s;
  field("m", m);
  field("n", n);
  field("k", k);
  field("batch", batch);
  field("type_ab", type_ab);
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
  auto& [type_ab, layout_a, layout_b, schedule, order, load, tile_m, tile_n, tile_k, cluster_m, cluster_n, ctas_per_sm] = s;
  field("type_ab", type_ab);
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
  auto& [kind, raster, tiles_m, tiles_n, groups, k_tiles, cluster_m, cluster_n, cohort, claim, splits, reduction, min_k_tiles,
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
  field("min_k_tiles", min_k_tiles, whole.min_k_tiles);
  field("stream_k_tiles", stream_k_tiles, whole.stream_k_tiles);
  field("stream_k_ranges", stream_k_ranges, whole.stream_k_ranges);
  field("stream_k_regions", stream_k_regions, whole.stream_k_regions);
}

void fields(Either<PredictedTime> auto& s, auto&& field) {
  auto& [launch_us, matrix_us, hbm_us, l2_us, ramp_us, exposed_epilogue_us, reduction_us, total_us, waves, useful_share, busy_share] = s;
  field("launch_us", launch_us);
  field("matrix_us", matrix_us);
  field("hbm_us", hbm_us);
  field("l2_us", l2_us);
  field("ramp_us", ramp_us);
  field("exposed_epilogue_us", exposed_epilogue_us);
  field("reduction_us", reduction_us);
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

std::optional<DataType> parse(std::string_view text, DataType) { return parse_data_type(text); }
std::optional<Layout> parse(std::string_view text, Layout) { return parse_layout(text); }
std::optional<Activation> parse(std::string_view text, Activation) { return parse_activation(text); }
std::optional<Bias> parse(std::string_view text, Bias) { return parse_bias(text); }
std::optional<SchedulerKind> parse(std::string_view text, SchedulerKind) { return parse_scheduler(text); }
std::optional<Rasterization> parse(std::string_view text, Rasterization) { return parse_rasterization(text); }
std::optional<WorkClaim> parse(std::string_view text, WorkClaim) { return parse_work_claim(text); }
std::optional<Reduction> parse(std::string_view text, Reduction) { return parse_reduction(text); }
std::optional<KernelSchedule> parse(std::string_view text, KernelSchedule) { return parse_kernel_schedule(text); }
std::optional<OperandOrder> parse(std::string_view text, OperandOrder) { return parse_operand_order(text); }
std::optional<LoadPath> parse(std::string_view text, LoadPath) { return parse_load_path(text); }
std::optional<CandidateVerdict> parse(std::string_view text, CandidateVerdict) { return parse_verdict(text); }

template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;

// JSON has no infinities and no NaN: as alpha or beta they are legal, and are written as these words.
constexpr std::pair<const char*, double> kNotFinite[] = {
    {"nan", std::numeric_limits<double>::quiet_NaN()},
    {"inf", std::numeric_limits<double>::infinity()},
    {"-inf", -std::numeric_limits<double>::infinity()},
};

template <class T>
Json encode(const T& value);

// A field with a third argument may be left out: it then has that value.
struct Writer {
  Json& object;

  void operator()(const char* name, const auto& field) const { object[name] = encode(field); }
  template <class T>
  void operator()(const char* name, const T& field, const T& usual) const {
    if (field != usual) object[name] = encode(field);
  }
};

template <class T>
Json encode(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    return to_string(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    if (std::isfinite(value)) return static_cast<double>(value);
    return kNotFinite[std::isnan(value) ? 0 : value > 0 ? 1 : 2].first;
  } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
    return value;
  } else if constexpr (kIsVector<T>) {
    Json array = Json::array();
    for (const auto& element : value) array.push_back(encode(element));
    return array;
  } else {
    Json object = Json::object();
    fields(value, Writer{object});
    return object;
  }
}

std::string dump(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);  // a name that is not UTF-8 must not throw
}

template <class T>
std::string with_header(std::string_view format, const T& value) {
  Json json = Json::object();
  json["format"] = format;
  json["version"] = kFormatVersion;
  fields(value, Writer{json});
  return dump(json) + "\n";
}

// Reads values, and keeps the first thing that was wrong.
class Reader {
 public:
  const std::optional<Error>& error() const { return error_; }

  void fail(const std::string& path, const std::string& what) {
    if (!error_) error_ = Error{ErrorCode::bad_format, (path.empty() ? "the document" : path) + " " + what};
  }

  template <class T>
  void read(const Json& json, T& value, const std::string& path) {
    if (error_) return;
    if constexpr (std::is_enum_v<T>) {
      read_name(json, value, path);
    } else if constexpr (std::is_floating_point_v<T>) {
      read_number(json, value, path);
    } else if constexpr (std::is_same_v<T, bool>) {
      if (!json.is_boolean()) return fail(path, "must be true or false, not " + shown(json));
      value = json.get<bool>();
    } else if constexpr (std::is_integral_v<T>) {
      read_integer(json, value, path);
    } else if constexpr (std::is_same_v<T, std::string>) {
      if (!json.is_string()) return fail(path, "must be a string, not " + shown(json));
      value = json.get<std::string>();
    } else if constexpr (kIsVector<T>) {
      if (!json.is_array()) return fail(path, "must be an array, not " + shown(json));
      for (std::size_t i = 0; i < json.size() && !error_; ++i) read(json[i], value.emplace_back(), path + "[" + std::to_string(i) + "]");
    } else {
      read_object(json, value, path, 0);
    }
  }

  template <class T>
  void read_object(const Json& json, T& value, const std::string& path, std::size_t known) {
    if (!json.is_object()) return fail(path, "must be an object, not " + shown(json));
    std::vector<std::string_view> names;
    const auto read_field = [&](const char* name, auto& field, const auto&... usual) {
      names.emplace_back(name);
      const auto found = json.find(name);
      if (found != json.end())
        read(*found, field, join(path, name));
      else if constexpr (sizeof...(usual) == 0)
        fail(join(path, name), "is missing");
      else
        field = (usual, ...);
    };
    fields(value, read_field);
    if (error_ || json.size() == names.size() + known) return;
    for (const auto& [name, unused] : json.items()) {
      const bool header = known != 0 && (name == "format" || name == "version");
      if (!header && std::find(names.begin(), names.end(), name) == names.end())
        return fail(join(path, name), "is not a field of version " + std::to_string(kFormatVersion) + " of the format; remove it");
    }
  }

 private:
  static std::string join(const std::string& path, const std::string& name) { return path.empty() ? name : path + "." + name; }

  // The value as it stands in the text, shortened.
  static std::string shown(const Json& json) {
    constexpr std::size_t kMost = 40;
    if (json.is_structured()) return json.is_array() ? "an array" : "an object";
    const std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
    return text.size() <= kMost ? text : text.substr(0, kMost) + "...";
  }

  template <class Enum>
  void read_name(const Json& json, Enum& value, const std::string& path) {
    const std::optional<Enum> parsed = json.is_string() ? parse(json.get_ref<const std::string&>(), Enum{}) : std::nullopt;
    if (parsed) {
      value = *parsed;
      return;
    }
    std::string known;  // enumerators count from 0, and the first without a name ends them
    for (int i = 0; std::string_view(to_string(static_cast<Enum>(i))) != "?"; ++i)
      known += std::string(i == 0 ? "" : ", ") + to_string(static_cast<Enum>(i));
    fail(path, "must be one of " + known + ", not " + shown(json));
  }

  template <class Number>
  void read_number(const Json& json, Number& value, const std::string& path) {
    if (json.is_number()) {
      const double number = json.get<double>();
      if (!(std::abs(number) <= std::numeric_limits<Number>::max())) return fail(path, "= " + shown(json) + " is out of range");
      value = static_cast<Number>(number);
      return;
    }
    if (json.is_string())
      for (const auto& [word, number] : kNotFinite)
        if (json.get_ref<const std::string&>() == word) {
          value = static_cast<Number>(number);
          return;
        }
    fail(path, "must be a number, not " + shown(json));
  }

  template <class Integer>
  void read_integer(const Json& json, Integer& value, const std::string& path) {
    if (!json.is_number_integer()) return fail(path, "must be an integer, not " + shown(json));
    const bool fits =
        json.is_number_unsigned() ? std::in_range<Integer>(json.get<std::uint64_t>()) : std::in_range<Integer>(json.get<std::int64_t>());
    if (!fits)
      return fail(path, "= " + shown(json) + " is out of range; the limits are " + std::to_string(std::numeric_limits<Integer>::min()) +
                            " and " + std::to_string(std::numeric_limits<Integer>::max()));
    value = json.get<Integer>();
  }

  std::optional<Error> error_;
};

// Text to value. The JSON library reports what is wrong by exceptions, and here they end.
template <class T>
Result<T> parse_document(const std::string& text, std::string_view format) try {
  const Json json = Json::parse(text);
  Reader reader;
  std::string found_format;
  int found_version = 0;
  if (!json.is_object() || !json.contains("format") || !json.contains("version"))
    return Error{ErrorCode::bad_format, "the document must be a JSON object with \"format\": \"" + std::string(format) +
                                            "\" and \"version\": " + std::to_string(kFormatVersion)};
  reader.read(json["format"], found_format, "format");
  reader.read(json["version"], found_version, "version");
  if (!reader.error() && found_format != format)
    reader.fail("format", "is \"" + found_format + "\"; expected \"" + std::string(format) + "\"");
  if (!reader.error() && found_version != kFormatVersion)
    reader.fail("version", "is " + std::to_string(found_version) + "; this library reads version " + std::to_string(kFormatVersion) +
                               "; make the file again with it");
  T value;
  if (!reader.error()) reader.read_object(json, value, "", 2);
  if (reader.error()) return *reader.error();
  return value;
} catch (const nlohmann::json::parse_error& e) {
  return Error{ErrorCode::bad_format, "not JSON: at byte " + std::to_string(e.byte) + " of " + std::to_string(text.size())};
} catch (const nlohmann::json::exception& e) {
  return Error{ErrorCode::bad_format, std::string("not readable as JSON: ") + e.what()};
}

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
