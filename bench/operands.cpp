#include "bench/operands.hpp"

#include <algorithm>

#include "bench/device_random.hpp"
#include "bench/random_w4.hpp"
#include "bench/sizing.hpp"

namespace sluice::bench {
namespace {

constexpr std::size_t kMostBytes = std::size_t{100} << 30;
std::size_t memory_limit() {
  std::size_t free_bytes = 0, total_bytes = 0;
  check(cudaMemGetInfo(&free_bytes, &total_bytes), "asking for free device memory");
  return std::min(kMostBytes, free_bytes / 10 * 9);
}

}  // namespace

OperandArena::OperandArena(const std::vector<Shape>& shapes, std::size_t l2_bytes, cudaStream_t stream)
    : stream_(stream), l2_bytes_(l2_bytes), most_bytes_(memory_limit()) {
  std::size_t inputs = 0, scales = 0, outputs = 0, codes = 0, dense = 0;
  for (const Shape& shape : shapes) {
    const SetBytes bytes(shape);
    const auto sets = static_cast<std::size_t>(rotating_set_count(shape, l2_bytes, most_bytes_));
    if (sets == 0)
      throw DeviceFailure(to_string(shape) + " needs " +
                          std::to_string((bytes.all() + bytes.dense_b + bytes.d + bytes.codes + bytes.code_scales) >> 20) +
                          " MB of device memory, and " + std::to_string(most_bytes_ >> 20) + " MB may be used; take it out of the suite");
    inputs = std::max(inputs, sets * bytes.inputs());
    scales = std::max(scales, sets * bytes.scales());
    outputs = std::max(outputs, (sets + 1) * bytes.d);
    codes = std::max(codes, bytes.codes + bytes.code_scales);
    dense = std::max(dense, sets * bytes.dense_b);
  }
  inputs_ = DeviceBuffer(inputs);
  outputs_ = DeviceBuffer(outputs);
  scales_ = DeviceBuffer(scales);
  codes_ = DeviceBuffer(codes);
  dense_ = DeviceBuffer(dense);
  const auto elements = static_cast<std::int64_t>(scales / sizeof(float));
  fill_random(scales_.data(), DataType::fp32, {.vectors = 1, .length = elements, .pitch = elements}, Distribution::positive, 2, stream,
              1 / spread(DataType::e4m3));
}

// Of variance 1; those of FP8 make use of all their range, and come to it by their scales.
void OperandArena::fill_inputs(DataType type) {
  if (filled_ == type) return;
  const std::int64_t elements = static_cast<std::int64_t>(inputs_.size_bytes()) / size_bytes(type);
  fill_random(inputs_.data(), type, {.vectors = 1, .length = elements, .pitch = elements}, Distribution::normal, 1, stream_, spread(type));
  // Weights that are declared constant may be fetched before the kernel ahead has ended: it must not be the one that makes them.
  check(cudaStreamSynchronize(stream_), "filling operands with random numbers");
  filled_ = type;
}

void OperandArena::fill_w4(const Shape& shape, int sets) {
  const SetBytes bytes(shape);
  const std::int64_t activations = shape.m * shape.k;
  std::byte *input = inputs_.data(), *dense = dense_.data(), *const code_scales = codes_.data() + bytes.codes;
  for (int set = 0; set < sets; ++set) {
    const std::uint64_t seed = 3 * static_cast<std::uint64_t>(set);
    fill_random(input, shape.activations, {.vectors = 1, .length = activations, .pitch = activations}, Distribution::normal, seed + 1,
                stream_);
    make_random_w4(shape.n, shape.k, shape.activations, seed + 2,
                   {.codes = codes_.data(), .scales = code_scales, .packed = input + bytes.a, .dense = dense}, stream_);
    input += bytes.inputs();
    dense += bytes.dense_b;
  }
  check(cudaStreamSynchronize(stream_), "making weights of 4 bits");  // as in fill_inputs()
  filled_.reset();
}

RotatingOperands OperandArena::operands(const Shape& shape) {
  const SetBytes bytes(shape);
  const int sets = rotating_set_count(shape, l2_bytes_, most_bytes_);
  if (has_w4(shape))
    fill_w4(shape, sets);
  else
    fill_inputs(shape.type);
  RotatingOperands result;
  result.d_bytes = static_cast<std::size_t>(shape.m * shape.n) * 2;
  const std::byte* input = inputs_.data();
  const std::byte* scale = scales_.data();
  std::byte* output = outputs_.data();
  for (int set = 0; set < sets; ++set) {
    OperandSet one{.a = input, .b = input + bytes.a, .d = output};
    if (bytes.scale_a > 0) one.scale_a = reinterpret_cast<const float*>(scale);
    if (bytes.scale_b > 0) one.scale_b = reinterpret_cast<const float*>(scale + bytes.scale_a);
    if (has_w4(shape)) one.dense_b = dense_.data() + static_cast<std::size_t>(set) * bytes.dense_b;
    result.sets.push_back(one);
    input += bytes.inputs();
    scale += bytes.scales();
    output += bytes.d;
  }
  result.reference_d = output;
  return result;
}

}  // namespace sluice::bench
