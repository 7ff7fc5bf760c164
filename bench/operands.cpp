#include "bench/operands.hpp"

#include <algorithm>

#include "bench/device_random.hpp"
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
    : l2_bytes_(l2_bytes), most_bytes_(memory_limit()) {
  std::size_t inputs = 0, outputs = 0;
  for (const Shape& shape : shapes) {
    const SetBytes bytes(shape);
    const auto sets = static_cast<std::size_t>(rotating_set_count(shape, l2_bytes, most_bytes_));
    if (sets == 0)
      throw DeviceFailure(to_string(shape) + " needs " + std::to_string((bytes.a + bytes.b + 2 * bytes.d) >> 20) +
                          " MB of device memory, and " + std::to_string(most_bytes_ >> 20) + " MB may be used; take it out of the suite");
    inputs = std::max(inputs, sets * (bytes.a + bytes.b));
    outputs = std::max(outputs, (sets + 1) * bytes.d);
  }
  inputs_ = DeviceBuffer(inputs);
  outputs_ = DeviceBuffer(outputs);
  const auto elements = static_cast<std::int64_t>(inputs / 2);
  fill_random(inputs_.data(), DataType::bf16, {.vectors = 1, .length = elements, .pitch = elements}, Distribution::normal, 1, stream);
}

RotatingOperands OperandArena::operands(const Shape& shape) const {
  const SetBytes bytes(shape);
  RotatingOperands result;
  result.d_bytes = static_cast<std::size_t>(shape.m * shape.n) * 2;
  const std::byte* input = inputs_.data();
  std::byte* output = outputs_.data();
  for (int set = rotating_set_count(shape, l2_bytes_, most_bytes_); set > 0; --set) {
    result.sets.push_back({.a = input, .b = input + bytes.a, .d = output});
    input += bytes.a + bytes.b;
    output += bytes.d;
  }
  result.reference_d = output;
  return result;
}

}  // namespace sluice::bench
