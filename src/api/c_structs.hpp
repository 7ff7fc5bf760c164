// The C structures and what they stand for in C++.
//
// A structure comes with the size it had in its caller's header. Shorter than ours: the missing fields take their defaults. Longer: the
// caller is newer, and may set nothing that this library does not know.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "sluice/sluice.h"

#include "sluice/attention.hpp"
#include "sluice/device.hpp"
#include "sluice/emulator.hpp"
#include "sluice/error.hpp"
#include "sluice/group_arguments.hpp"
#include "sluice/histogram.hpp"
#include "sluice/plan.hpp"
#include "sluice/problem.hpp"
#include "sluice/quantize.hpp"
#include "sluice/run.hpp"
#include "sluice/w4.hpp"

namespace sluice {

template <class C>
inline constexpr const char* kStructName = "";
template <>
inline constexpr const char* kStructName<sluice_problem> = "sluice_problem";
template <>
inline constexpr const char* kStructName<sluice_device> = "sluice_device";
template <>
inline constexpr const char* kStructName<sluice_plan_options> = "sluice_plan_options";
template <>
inline constexpr const char* kStructName<sluice_plan_info> = "sluice_plan_info";
template <>
inline constexpr const char* kStructName<sluice_arguments> = "sluice_arguments";
template <>
inline constexpr const char* kStructName<sluice_emulator_options> = "sluice_emulator_options";
template <>
inline constexpr const char* kStructName<sluice_quantize_problem> = "sluice_quantize_problem";
template <>
inline constexpr const char* kStructName<sluice_quantize_arguments> = "sluice_quantize_arguments";
template <>
inline constexpr const char* kStructName<sluice_pack_w4_problem> = "sluice_pack_w4_problem";
template <>
inline constexpr const char* kStructName<sluice_pack_w4_arguments> = "sluice_pack_w4_arguments";
template <>
inline constexpr const char* kStructName<sluice_histogram_problem> = "sluice_histogram_problem";
template <>
inline constexpr const char* kStructName<sluice_histogram_arguments> = "sluice_histogram_arguments";
template <>
inline constexpr const char* kStructName<sluice_attention_problem> = "sluice_attention_problem";
template <>
inline constexpr const char* kStructName<sluice_attention_arguments> = "sluice_attention_arguments";

// Fields of 8 bytes, and pairs of 4, so that no size of a past version ends inside a field. A size beyond the largest was never set.
inline constexpr std::size_t kStructGrain = 8, kSmallestStruct = 16, kLargestStruct = 4096;

template <class C>
Status check_struct_size(std::size_t size) {
  static_assert(sizeof(C) % kStructGrain == 0 && sizeof(C) <= kLargestStruct);
  if (size % kStructGrain == 0 && size >= kSmallestStruct && size <= kLargestStruct) return Nothing{};
  const std::string who = kStructName<C>;
  return Error{ErrorCode::invalid_argument, "struct_size = " + std::to_string(size) + " of a " + who +
                                                " must be a multiple of 8 from 16 to 4096; " + "call " + who +
                                                "_init(&it, sizeof it) before filling it in"};
}

sluice_problem default_of(const sluice_problem*);
sluice_device default_of(const sluice_device*);
inline sluice_plan_options default_of(const sluice_plan_options*) { return {}; }
inline sluice_plan_info default_of(const sluice_plan_info*) { return {}; }
inline sluice_arguments default_of(const sluice_arguments*) { return {}; }
sluice_emulator_options default_of(const sluice_emulator_options*);
sluice_quantize_problem default_of(const sluice_quantize_problem*);
inline sluice_quantize_arguments default_of(const sluice_quantize_arguments*) { return {}; }
sluice_pack_w4_problem default_of(const sluice_pack_w4_problem*);
inline sluice_pack_w4_arguments default_of(const sluice_pack_w4_arguments*) { return {}; }
sluice_histogram_problem default_of(const sluice_histogram_problem*);
inline sluice_histogram_arguments default_of(const sluice_histogram_arguments*) { return {}; }
sluice_attention_problem default_of(const sluice_attention_problem*);
inline sluice_attention_arguments default_of(const sluice_attention_arguments*) { return {}; }

// Writes exactly `size` bytes.
template <class C>
Status fill_in_defaults(C& to, std::size_t size) {
  if (Status s = check_struct_size<C>(size); !s) return s;
  C whole = default_of(&to);
  whole.struct_size = size;
  const std::size_t known = std::min(size, sizeof(C));
  char* const bytes = reinterpret_cast<char*>(&to);
  std::memcpy(bytes, &whole, known);
  std::fill(bytes + known, bytes + size, '\0');
  return Nothing{};
}

// The structure as this library knows it. Reads exactly given.struct_size bytes.
template <class C>
Result<C> read_struct(const C& given) {
  const std::size_t size = given.struct_size;
  if (Status s = check_struct_size<C>(size); !s) return s.error();
  const std::size_t known = std::min(size, sizeof(C));
  const char* const bytes = reinterpret_cast<const char*>(&given);
  if (std::any_of(bytes + known, bytes + size, [](char byte) { return byte != 0; }))
    return Error{ErrorCode::unsupported, std::string("a ") + kStructName<C> + " of " + std::to_string(size) +
                                             " bytes sets fields that this version of Sluice, which knows " + std::to_string(sizeof(C)) +
                                             " bytes, lacks; leave them 0 or use a newer library"};
  C whole = default_of(&given);
  std::memcpy(reinterpret_cast<char*>(&whole), bytes, known);
  return whole;
}

// Fills in the fields that the caller's structure has.
template <class C>
Status write_struct(const C& whole, C& to) {
  const std::size_t size = to.struct_size;
  if (Status s = check_struct_size<C>(size); !s) return s;
  std::memcpy(reinterpret_cast<char*>(&to), &whole, std::min(size, sizeof(C)));
  to.struct_size = size;
  return Nothing{};
}

Result<GemmProblem> to_problem(const sluice_problem& given);
Result<GemmArguments> to_arguments(const sluice_arguments& given);
Result<DeviceSpec> to_device_spec(const sluice_device& given);
Result<PlanOptions> to_plan_options(const sluice_plan_options& given);
Result<QuantizeProblem> to_quantize_problem(const sluice_quantize_problem& given);
Result<PackW4Problem> to_pack_w4_problem(const sluice_pack_w4_problem& given);
Result<HistogramProblem> to_histogram_problem(const sluice_histogram_problem& c);
Result<AttentionProblem> to_attention_problem(const sluice_attention_problem& given);
Result<EmulatorOptions> to_emulator_options(const sluice_emulator_options* given);  // null: defaults
Status from_device_spec(const DeviceSpec& spec, sluice_device& to);
Status from_plan(const Plan& plan, sluice_plan_info& to);

}  // namespace sluice
