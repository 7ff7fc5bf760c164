// Tensor maps as the driver encodes them.
#pragma once

#include "launch/bind.hpp"

namespace sluice {

Result<arch::TensorMap> encode_tensor_map(const GlobalTensor& tensor, BoxShape box);

}  // namespace sluice
