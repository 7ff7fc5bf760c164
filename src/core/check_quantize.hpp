// What quantize() and its brothers ask of their pointers.
#pragma once

#include "sluice/quantize.hpp"

namespace sluice {

// `problem` is validated.
Status check_arguments(const QuantizeProblem& problem, const QuantizeArguments& arguments);

}  // namespace sluice
