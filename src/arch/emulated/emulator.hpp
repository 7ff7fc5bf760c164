// An emulated Hopper, seen from the host: what a launch gives it and what it answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "sluice/emulator.hpp"

#include "arch/types.hpp"

namespace sluice::arch::emulated {

// How products of 8-bit numbers are added up. hopper: about 14 bits of the largest term are kept (DeepSeek-V3 Technical Report,
// arXiv:2412.19437, section 3.5.2), exact: in fp32.
enum class Fp8Accumulation : std::uint8_t { exact, hopper };

struct Options : EmulatorOptions {
  Fp8Accumulation fp8 = Fp8Accumulation::hopper;
};

struct ByteRange {
  std::size_t first, end;
};

// Global memory that the kernel may touch. What the caller declares constant may be read before the predecessor has finished, but for what
// is new in it. What is handed on, launches pass to each other before they end: a CTA may use it from the start, until it lets the next
// launch begin.
struct GlobalBuffer {
  std::string name;
  const void* data = nullptr;
  std::size_t bytes = 0;
  bool writable = false;
  bool constant = false;
  bool handed_on = false;
  std::vector<ByteRange> fresh;
};

struct Launch {
  int clusters = 1;
  int ctas_per_cluster = 1;
  int threads_per_cta = 128;
  int shared_memory_bytes = 0;
  std::vector<GlobalBuffer> buffers;
  // wgmma may multiply shared memory that nobody has written, where boxes are narrower than a tile: NaN, which shows wherever it is stored.
  bool multiplies_unwritten = false;
  std::function<void(double done)> progress;  // called when a cluster has finished
};

// What a kernel did wrong, in words: who, where, what, and how to see it again.
class EmulationError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Statistics {
  std::uint64_t steps = 0;  // turns given to threads and to asynchronous work
  std::uint64_t copies = 0;
  std::uint64_t multiplications = 0;  // wgmma instructions of a warpgroup
};

// Runs `kernel` in every thread of the launch. Throws EmulationError.
Statistics run(const Launch& launch, const Options& options, const std::function<void()>& kernel);

enum class Element : std::uint8_t { byte, bf16, fp16, fp32 };
constexpr int size_bytes(Element element) { return element == Element::byte ? 1 : element == Element::fp32 ? 4 : 2; }

// A tensor as the copy engine sees it: up to three dimensions, the first contiguous, boxes swizzled over `swizzle_bytes` (0: not).
struct TensorShape {
  const void* data = nullptr;
  Element element = Element::bf16;
  std::int64_t extents[3] = {1, 1, 1};
  std::int64_t strides_bytes[2] = {0, 0};
  int box[3] = {1, 1, 1};
  int swizzle_bytes = 0;
};
// Checked against the rules of cuTensorMapEncodeTiled; throws EmulationError with the rule that is broken.
TensorMap encode_tensor_map(const TensorShape& shape);

}  // namespace sluice::arch::emulated
