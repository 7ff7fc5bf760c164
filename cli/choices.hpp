// Words on the command line that stand for values of the library.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sluice/error.hpp"
#include "sluice/scaling.hpp"
#include "sluice/types.hpp"

namespace sluice::cli {

inline constexpr const char* kInputTypes = "bf16, fp16, e4m3, e5m2, or those of A and B: e4m3,e5m2, bf16,int4, e4m3,int4";
inline constexpr const char* kOutputTypes = "bf16, fp16, fp32, of FP8 operands e4m3, e5m2";
inline constexpr const char* kResultScalings = "none, tensor (given), 1x128 (found)";
inline constexpr const char* kActivations = "none, relu, gelu_tanh, silu";
inline constexpr const char* kBiases = "none, per_row, per_column, per_group_column";
inline constexpr const char* kSchedules = "cooperative, pingpong, streaming, sliced-k";
inline constexpr const char* kSchedulers = "one-tile-per-cta, data-parallel, split-k, stream-k, hybrid";
inline constexpr const char* kClaims = "fixed, ticket";
inline constexpr const char* kReductions = "workspace, separate, cluster";
inline constexpr const char* kDeterminisms = "fast, deterministic, batch-invariant";
inline constexpr const char* kBackends = "cuda, emulator, reference";
inline constexpr const char* kAsynchronies = "random, eager, lazy, mixed";
inline constexpr const char* kRasters = "along-m, along-n";
inline constexpr const char* kGroupings = "none, ragged, masked, along-k, general";
inline constexpr const char* kGroupingsOfFiles = "none, ragged, masked, along-k";  // general groups have matrices of their own sizes
inline constexpr const char* kScalings = "none, tensor, vector, 1x128, 128x128";
inline constexpr const char* kScaleLayouts = "row-major, column-major";
inline constexpr const char* kLayouts = "rc, rr, cc, cr (A's letter, then B's: r row-major, c column-major)";

struct LayoutPair {
  Layout a;
  Layout b;
};

std::optional<LayoutPair> parse_layout_pair(std::string_view text);
std::string letters(Layout a, Layout b);

struct TypePair {
  DataType a;
  DataType b;
};

// "e4m3,e5m2" or "e4m3xe5m2", or one word for both.
std::optional<TypePair> parse_type_pair(std::string_view text);
std::string words(DataType a, DataType b);  // that parse_type_pair() reads

// `text` as a value, or an error that lists the choices.
template <class T>
Result<T> choose(const char* flag, const std::string& text, std::optional<T> (*parse)(std::string_view), const char* choices) {
  if (const std::optional<T> value = parse(text)) return *value;
  return Error{ErrorCode::invalid_argument, std::string(flag) + " '" + text + "' is not known; choose from " + choices};
}

// The same for a flag that may be absent: an empty text leaves `target` as it is.
template <class T, class Target>
Status choose_into(Target& target, const char* flag, const std::string& text, std::optional<T> (*parse)(std::string_view),
                   const char* choices) {
  if (text.empty()) return Nothing{};
  const Result<T> value = choose(flag, text, parse, choices);
  if (!value) return value.error();
  target = *value;
  return Nothing{};
}

// FP8 operands are not the type of a result.
constexpr DataType usual_result_type(DataType operands) { return is_fp8(operands) ? DataType::bf16 : operands; }

}  // namespace sluice::cli
