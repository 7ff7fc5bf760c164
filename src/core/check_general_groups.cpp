#include "core/check_general_groups.hpp"

#include <cstdint>
#include <string>
#include <tuple>
#include <utility>

#include "core/check_arguments.hpp"
#include "core/general_groups.hpp"

namespace sluice {
namespace {

// That each row of A and each column of B starts where the copy engine can fetch it.
Status check_operands(const GemmProblem& group, const GroupArguments& g) {
  constexpr int kPacketBytes = 16;
  const std::int64_t step = kPacketBytes / size_bytes(group.type_a);
  for (const auto& [name, pointer] : {std::pair{"a", g.a}, {"b", g.b}})
    if (const auto behind = reinterpret_cast<std::uintptr_t>(pointer) % kPacketBytes; behind != 0)
      return Error{ErrorCode::misaligned, std::string(name) + " starts " + std::to_string(behind) +
                                              " bytes behind a multiple of 16, where the copy engine fetches nothing; move it"};
  for (const auto& [name, leading, what] : {std::tuple{"lda", group.lda, "rows of A"}, {"ldb", group.ldb, "columns of B"}})
    if (leading % step != 0)
      return Error{ErrorCode::misaligned, std::string(name) + " = " + std::to_string(leading) + " of " + to_string(group.type_a) + ": " +
                                              what + " must start at multiples of 16 bytes (" + name + " % " + std::to_string(step) +
                                              " == 0, k if packed); pad to " + std::to_string((leading / step + 1) * step)};
  return Nothing{};
}

Status check_group(const GemmProblem& p, const GroupArguments& g) {
  const Result<GemmProblem> problem = validate(problem_of_group(p, g));
  if (!problem) return problem.error();
  if (g.k > 0)
    if (Status s = check_operands(*problem, g); !s) return s;
  return check_arguments(*problem, arguments_of_group(g));
}

}  // namespace

Status check_general_groups(const GemmProblem& p, const GroupArguments* host_groups) {
  for (std::int64_t i = 0; i < p.batch; ++i) {
    const Status s = check_group(p, within(group_limits(p), host_groups[i]));
    if (!s) return Error{s.error().code, "group " + std::to_string(i) + ": " + s.error().message};
  }
  return Nothing{};
}

}  // namespace sluice
