// Layers of weights of 4 bits as checkpoints keep them, made ready for pack_w4(). Where the layouts come from:
//
// GPTQ: qweight, qzeros, scales, g_idx. AutoGPTQ, auto_gptq/nn_modules/qlinear/qlinear_cuda.py, https://github.com/AutoGPTQ/AutoGPTQ
//
// AWQ: qweight, qzeros, scales. AutoAWQ, awq/modules/linear/gemm.py (its GEMM version), https://github.com/casper-hansen/AutoAWQ
//
// compressed-tensors: weight_packed, weight_scale, maybe weight_zero_point, weight_g_idx, weight_shape.
// compressors/quantized_compressors/pack_quantized.py, https://github.com/neuralmagic/compressed-tensors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "safetensors.hpp"
#include "sluice/w4.hpp"

namespace sluice::cli {

struct W4Layer {
  PackW4Problem problem;  // validated
  std::vector<std::byte> codes, scales, zeros;
  std::vector<std::int32_t> order;  // of K; empty: as it lies
  std::vector<std::string> lines;   // what was read, and what to know of it
};

struct W4LayerFlags {
  std::string layer;              // what the names of its tensors begin with; empty: the only one
  std::optional<int> group_size;  // nothing: what the scales' shape says
  std::optional<DataType> type;   // nothing: that of the scales, bf16 for fp32
  bool gptq_v2 = false;
};

// The names of the layers of 4 bits in these files.
std::vector<std::string> w4_layers(const std::vector<SafetensorsFile>& files);

Result<W4Layer> read_w4_layer(const std::vector<SafetensorsFile>& files, const W4LayerFlags& flags);
// Plain ones: codes are uint8 [n, k/2], scales [n, groups], zero points uint8 [n, groups]; `zeros` may be empty.
Result<W4Layer> read_plain_w4(const std::string& codes, const std::string& scales, const std::string& zeros, bool bf16_as_uint16,
                              const W4LayerFlags& flags);

}  // namespace sluice::cli
