// Describing tensors to the emulated copy engine.
#pragma once

#include "launch/bind.hpp"

namespace sluice {

// An EncodeTensorMap.
Result<arch::TensorMap> encode_emulated_tensor_map(const GlobalTensor& tensor, BoxShape box);

}  // namespace sluice
