#include "core/check_arguments.hpp"

#include <charconv>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>

#include "sluice/group_arguments.hpp"

#include "core/groups.hpp"
#include "core/scale_layout.hpp"

namespace sluice {
namespace {

std::string hexadecimal(std::uintptr_t value) {
  char digits[2 * sizeof value];
  return "0x" + std::string(digits, std::to_chars(digits, digits + sizeof digits, value, 16).ptr);
}

struct Elements {
  const char* name;
  int bytes;

  Elements(DataType type) : name(to_string(type)), bytes(size_bytes(type)) {}  // NOLINT(google-explicit-constructor): a type names them
  Elements(const char* of, int size) : name(of), bytes(size) {}
};

struct Pointer {
  const char* name;
  const void* address;
  const char* promise;  // the field of GemmProblem that says how it is aligned
  int alignment_bytes;
  Elements of;
  const char* needed_because;
  const char* way_out;
};

Status check(const Pointer& pointer) {
  if (pointer.address == nullptr)
    return Error{ErrorCode::invalid_argument,
                 std::string(pointer.name) + " is null, but " + pointer.needed_because + "; " + pointer.way_out};

  const auto address = reinterpret_cast<std::uintptr_t>(pointer.address);
  if (address % static_cast<std::uintptr_t>(pointer.alignment_bytes) == 0) return Nothing{};
  const auto aligned_to = static_cast<int>(address & (~address + 1));
  std::string message = std::string(pointer.name) + " = " + hexadecimal(address) + " is aligned to " + std::to_string(aligned_to) +
                        (aligned_to == 1 ? " byte" : " bytes") + ", the plan was made for " + std::to_string(pointer.alignment_bytes);
  if (aligned_to >= pointer.of.bytes)
    message += std::string("; plan with ") + pointer.promise + " = " + std::to_string(aligned_to) + ", or align the pointer";
  else
    message += std::string("; ") + pointer.of.name + " elements cannot start there: align the pointer to at least " +
               std::to_string(pointer.of.bytes) + " bytes";
  return Error{ErrorCode::misaligned, std::move(message)};
}

Status check_in_place(const GemmProblem& p) {
  if (p.m > 1 && p.ldc != p.ldd)
    return Error{ErrorCode::invalid_argument, "c and d are the same pointer, but ldc = " + std::to_string(p.ldc) + " and ldd = " +
                                                  std::to_string(p.ldd) + " differ; use equal strides, or another place for d"};
  if (p.batch > 1 && p.batch_stride_c != p.batch_stride_d)
    return Error{ErrorCode::invalid_argument, "c and d are the same pointer, but batch_stride_c = " + std::to_string(p.batch_stride_c) +
                                                  " and batch_stride_d = " + std::to_string(p.batch_stride_d) +
                                                  " differ; use equal strides, or another place for d"};
  return Nothing{};
}

// General groups bring their own pointers.
Status check_general(const GemmArguments& arguments) {
  for (const auto& [name, pointer] : {std::pair<const char*, const void*>{"a", arguments.a},
                                      {"b", arguments.b},
                                      {"c", arguments.c},
                                      {"d", arguments.d},
                                      {"bias", arguments.bias},
                                      {"scale_a", arguments.scale_a},
                                      {"scale_b", arguments.scale_b},
                                      {"scale_d", arguments.scale_d},
                                      {"groups", arguments.groups}})
    if (pointer != nullptr)
      return Error{ErrorCode::invalid_argument,
                   std::string(name) + " is not null, but general groups have their pointers and sizes in group_arguments; pass null"};
  return check({"group_arguments",
                arguments.group_arguments,
                "group_arguments",
                alignof(GroupArguments),
                {"GroupArguments", alignof(GroupArguments)},
                "the groups are general",
                "pass an array of one for each group"});
}

}  // namespace

Status check_arguments(const GemmProblem& p, const GemmArguments& arguments) {
  if (is_empty(p)) return Nothing{};
  if (is_general(p)) return check_general(arguments);
  if (Status s = check(
          {"d", arguments.d, "alignment_d_bytes", p.alignment_d_bytes, p.type_d, "the result goes there", "pass m x n elements of memory"});
      !s)
    return s;
  if (reads_a_and_b(p)) {
    const char* const reason = "alpha and k are not 0";
    const char* const way_out = "pass the matrix";
    if (Status s = check({"a", arguments.a, "alignment_a_bytes", p.alignment_a_bytes, p.type_a, reason, way_out}); !s) return s;
    const Elements of_b = p.type_b == DataType::int4 ? Elements("packed int4", 16) : Elements(p.type_b);
    if (Status s = check({"b", arguments.b, "alignment_b_bytes", p.alignment_b_bytes, of_b, reason, way_out}); !s) return s;
    for (const auto& [name, scaling, scales] :
         {std::tuple{"scale_a", p.scaling_a, arguments.scale_a}, {"scale_b", p.scaling_b, arguments.scale_b}}) {
      if (scaling == Scaling::none) continue;
      if (Status s = check({name, scales, name, sizeof(float), DataType::fp32, "the operand has scales", "pass them"}); !s) return s;
    }
  }
  if (reads_c(p)) {
    if (Status s = check({"c", arguments.c, "alignment_d_bytes", p.alignment_d_bytes, p.type_d, "beta is not 0",
                          "pass the matrix (it may be d), or plan with beta = 0"});
        !s)
      return s;
    if (arguments.c == arguments.d)
      if (Status s = check_in_place(p); !s) return s;
  }
  if (p.scaling_d != Scaling::none)
    if (Status s = check({"scale_d", arguments.scale_d, "scale_d", sizeof(float), DataType::fp32,
                          finds_scales(p) ? "the scales of d go there" : "d has a scale",
                          finds_scales(p) ? "pass memory for scale_elems_d() of them" : "pass it"});
        !s)
      return s;
  if (has_groups(p))
    if (Status s = check({"groups",
                          arguments.groups,
                          "groups",
                          sizeof(std::int32_t),
                          {"int32", sizeof(std::int32_t)},
                          "the problem is grouped",
                          "pass the groups' sizes, as Grouping says"});
        !s)
      return s;
  if (p.epilogue.bias != Bias::none) {
    const int alignment_bytes = is_fp8(p.type_d) ? int{sizeof(float)} : p.alignment_d_bytes;
    return check({"bias", arguments.bias, "alignment_d_bytes", alignment_bytes, bias_type(p.type_d), "the epilogue adds one",
                  "pass the vector, or plan with Bias::none"});
  }
  return Nothing{};
}

Status check_arguments(const Plan& plan, const GemmArguments& arguments) { return check_arguments(plan.problem, arguments); }

}  // namespace sluice
