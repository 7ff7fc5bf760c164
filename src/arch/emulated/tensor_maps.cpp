// Tensor maps: encoded by the host, or made by a kernel from one that was.
#include <algorithm>
#include <cstring>

#include "arch/emulated/encoded_tensor.hpp"
#include "arch/emulated/machine.hpp"

namespace sluice::arch::emulated {
namespace {

Machine& machine() { return Machine::here(); }

constexpr std::size_t kMapAlignmentBytes = 128;
constexpr std::uint64_t kMostExtent = std::uint64_t{1} << 32, kStrideLimitBytes = std::uint64_t{1} << 40;

bool is_address(std::uint64_t address) { return address != 0 && address % 16 == 0; }
bool is_extent(std::uint64_t elems) { return elems > 0 && elems <= kMostExtent; }
bool is_stride(std::uint64_t bytes) { return bytes % 16 == 0 && bytes < kStrideLimitBytes; }

void require(bool holds, const std::string& rule) {
  if (!holds) throw EmulationError("a tensor map breaks a rule of cuTensorMapEncodeTiled: " + rule);
}

// Whether the map lies where kernels can write one.
bool in_global_memory(const TensorMap& map) {
  const auto* const address = reinterpret_cast<const std::byte*>(&map);
  const auto& buffers = machine().launch().buffers;
  return std::any_of(buffers.begin(), buffers.end(), [&](const GlobalBuffer& buffer) {
    const auto* const first = static_cast<const std::byte*>(buffer.data);
    return first <= address && address < first + buffer.bytes;
  });
}

}  // namespace

EncodedTensor decode(const TensorMap& map, const Location& at) {
  const auto& acquired = machine().thread().acquired_maps;
  if (in_global_memory(map) && std::find(acquired.begin(), acquired.end(), &map) == acquired.end())
    machine().fail(at, "uses a tensor map in global memory that this thread has not acquired");
  EncodedTensor t;
  std::memcpy(static_cast<void*>(&t), &map, sizeof t);
  if (t.magic != EncodedTensor::kMagic) machine().fail(at, "uses a tensor map that was never filled in");
  return t;
}

TensorMap encode_tensor_map(const TensorShape& shape) {
  const int size = size_bytes(shape.element);
  require(is_address(reinterpret_cast<std::uintptr_t>(shape.data)), "the address must be a multiple of 16");
  EncodedTensor t{.element = shape.element,
                  .swizzle_bytes = static_cast<std::uint8_t>(shape.swizzle_bytes),
                  .data = static_cast<std::byte*>(const_cast<void*>(shape.data))};
  for (int d = 0; d < kDimensions; ++d) {
    require(is_extent(static_cast<std::uint64_t>(shape.extents[d])),
            "extent " + std::to_string(shape.extents[d]) + " must be from 1 to 2^32");
    require(shape.box[d] > 0 && shape.box[d] <= 256, "box extent " + std::to_string(shape.box[d]) + " must be from 1 to 256");
    t.extents[d] = static_cast<std::uint64_t>(shape.extents[d]);
    t.box[d] = static_cast<std::uint16_t>(shape.box[d]);
    if (d == 0) continue;
    const std::int64_t stride = shape.strides_bytes[d - 1];
    require(is_stride(static_cast<std::uint64_t>(stride)), "stride " + std::to_string(stride) + " must be a multiple of 16 under 2^40");
    t.strides_bytes[d] = static_cast<std::uint64_t>(stride);
  }
  t.strides_bytes[0] = static_cast<std::uint64_t>(size);
  const int row = shape.box[0] * size, s = shape.swizzle_bytes;
  require(row % 16 == 0, "a box's rows of " + std::to_string(row) + " bytes must be multiples of 16");
  require(s == 0 || s == 32 || s == 64 || s == 128, "swizzles are over 32, 64 or 128 bytes");
  require(s == 0 || row <= s, "a box's rows of " + std::to_string(row) + " bytes must fit in the swizzle of " + std::to_string(s));
  TensorMap map{};
  std::memcpy(&map, &t, sizeof t);
  return map;
}

void replace_in_map(SharedAddress map, MapField field, int direction, std::uint64_t value, const Location& at) {
  TensorMap bytes;
  load_shared(map, &bytes, sizeof bytes, at);
  EncodedTensor t;
  std::memcpy(static_cast<void*>(&t), &bytes, sizeof t);
  if (t.magic != EncodedTensor::kMagic) machine().fail(at, "replaces a field of a tensor map that was never filled in");
  const auto d = static_cast<std::size_t>(direction);
  switch (field) {
    case MapField::address:
      if (!is_address(value)) machine().fail(at, "puts an address into a tensor map that is null or no multiple of 16");
      t.data = reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(value));  // NOLINT(performance-no-int-to-ptr): as the instruction
      break;
    case MapField::extent:
      if (!is_extent(value)) machine().fail(at, "puts extent " + std::to_string(value) + " into a tensor map; it must be from 1 to 2^32");
      t.extents[d] = value;
      break;
    case MapField::stride:
      if (!is_stride(value))
        machine().fail(at, "puts stride " + std::to_string(value) + " into a tensor map; it must be a multiple of 16 under 2^40");
      t.strides_bytes[d] = value;
      break;
  }
  std::memcpy(&bytes, &t, sizeof t);
  store_shared(map, &bytes, sizeof bytes, at);
}

void publish_tensor_map(TensorMap* to, SharedAddress map, const Location& at) {
  const bool first = machine().thread().number % kWarpThreads == 0;
  sync_warp(at);
  if (first) {
    if (reinterpret_cast<std::uintptr_t>(to) % kMapAlignmentBytes != 0)
      machine().fail(at, "publishes a tensor map at an address that is no multiple of 128");
    TensorMap bytes;
    load_shared(map, &bytes, sizeof bytes, at);
    check_global(to, sizeof bytes, true, at);
    *to = bytes;
  }
  sync_warp(at);
}

void acquire_tensor_map(const TensorMap& map, const Location& at) {
  check_global(&map, sizeof map, false, at);
  auto& acquired = machine().thread().acquired_maps;
  if (std::find(acquired.begin(), acquired.end(), &map) == acquired.end()) acquired.push_back(&map);
}

}  // namespace sluice::arch::emulated
