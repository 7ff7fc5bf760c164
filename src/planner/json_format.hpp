// Structures as JSON, there and back without loss.
//
// Each structure lists its fields once, in fields(), and both directions walk that list: field(name, member), or
// field(name, member, usual) for one that may be left out. fields() stands in namespace sluice, where it is found by its argument.
#pragma once

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

#include "sluice/error.hpp"
#include "sluice/kernel_config.hpp"
#include "sluice/plan_value.hpp"
#include "sluice/scaling.hpp"
#include "sluice/schedule.hpp"
#include "sluice/types.hpp"

namespace sluice {

using Json = nlohmann::ordered_json;

constexpr int kFormatVersion = 1;

// T, or const T when writing.
template <class S, class T>
concept Either = std::is_same_v<std::remove_const_t<S>, T>;

inline std::optional<DataType> parse(std::string_view text, DataType) { return parse_data_type(text); }
inline std::optional<Grouping> parse(std::string_view text, Grouping) { return parse_grouping(text); }
inline std::optional<Scaling> parse(std::string_view text, Scaling) { return parse_scaling(text); }
inline std::optional<Layout> parse(std::string_view text, Layout) { return parse_layout(text); }
inline std::optional<Activation> parse(std::string_view text, Activation) { return parse_activation(text); }
inline std::optional<Bias> parse(std::string_view text, Bias) { return parse_bias(text); }
inline std::optional<SchedulerKind> parse(std::string_view text, SchedulerKind) { return parse_scheduler(text); }
inline std::optional<Rasterization> parse(std::string_view text, Rasterization) { return parse_rasterization(text); }
inline std::optional<WorkClaim> parse(std::string_view text, WorkClaim) { return parse_work_claim(text); }
inline std::optional<Reduction> parse(std::string_view text, Reduction) { return parse_reduction(text); }
inline std::optional<KernelSchedule> parse(std::string_view text, KernelSchedule) { return parse_kernel_schedule(text); }
inline std::optional<OperandOrder> parse(std::string_view text, OperandOrder) { return parse_operand_order(text); }
inline std::optional<LoadPath> parse(std::string_view text, LoadPath) { return parse_load_path(text); }
inline std::optional<CandidateVerdict> parse(std::string_view text, CandidateVerdict) { return parse_verdict(text); }

template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;

// JSON has no infinities and no NaN: as alpha or beta they are legal, and are written as these words.
inline constexpr std::pair<const char*, double> kNotFinite[] = {
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

inline std::string dump(const Json& json) {
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
    std::size_t there = known;
    const auto read_field = [&](const char* name, auto& field, const auto&... usual) {
      names.emplace_back(name);
      const auto found = json.find(name);
      if (found != json.end())
        ++there, read(*found, field, join(path, name));
      else if constexpr (sizeof...(usual) == 0)
        fail(join(path, name), "is missing");
      else
        field = (usual, ...);
    };
    fields(value, read_field);
    if (error_ || json.size() == there) return;
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

}  // namespace sluice
