// From an attention plan and pointers to what the kernel is passed.
#pragma once

#include "sluice/attention.hpp"

#include "kernel/attention/attention_params.hpp"
#include "launch/bind.hpp"

namespace sluice {

// The plan's problem is validated, the arguments are checked.
Result<AttentionParams> bind(const AttentionPlan& plan, const AttentionArguments& arguments, void* workspace, EncodeTensorMap encode);

}  // namespace sluice
