// Whether a workspace has what its plan asks for.
#pragma once

#include <cstddef>
#include <string>

#include "sluice/error.hpp"

namespace sluice {

// `field`: where the caller finds how many bytes that is.
inline Status check_workspace(const void* workspace, std::size_t bytes, std::size_t needed, const char* field) {
  if (workspace == nullptr) bytes = 0;
  if (bytes >= needed) return Nothing{};
  return Error{ErrorCode::workspace_too_small,
               "the workspace has " + std::to_string(bytes) + " bytes; the plan needs " + std::to_string(needed) + " (" + field + ")"};
}

}  // namespace sluice
