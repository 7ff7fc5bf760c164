// Packing weights of 4 bits into the one layout that products take as B (type_b int4): docs/w4.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/emulator.hpp"
#include "sluice/error.hpp"
#include "sluice/problem.hpp"
#include "sluice/run.hpp"
#include "sluice/types.hpp"
#include "sluice/w4_format.hpp"

namespace sluice {

// How weights lie that are to be packed. `groups` is ceil(k / group_size), 1 for whole columns. Words are 32 bits, their first code lowest.
//   plain  codes: n rows of k / 2 bytes, the low 4 bits first; scales: n x groups; zeros: n x groups bytes. Symmetric codes of
//          compressed-tensors (weight_packed) lie so, too
//   gptq   codes: k / 8 x n words (qweight), a word holds 8 elements of K; scales: groups x n; zeros: groups x ceil(n / 8) words (qzeros),
//          each zero point less one
//   awq    codes: k x n / 8 words (qweight), a word holds 8 columns in the order 0, 2, 4, 6, 1, 3, 5, 7; scales: groups x n;
//          zeros: groups x n / 8 words (qzeros) in the same order
enum class W4Source : std::uint8_t { plain, gptq, awq };
const char* to_string(W4Source source);  // "plain", "gptq", "awq"
std::optional<W4Source> parse_w4_source(std::string_view text);

// One matrix B: k x n, n a multiple of 8, k a multiple of 8, and of 16 where its last group is short.
struct PackW4Problem {
  std::int64_t n = 0;
  std::int64_t k = 0;
  W4Format format;
  W4Source source = W4Source::plain;
  DataType type = DataType::bf16;         // of the activations: bf16, fp16 or e4m3. Scales once packed are of it, or fp16 beside e4m3
  DataType type_scales = DataType::bf16;  // of those given: bf16, fp16 or fp32; rounded to nearest even
  bool zeros_less_one = true;             // gptq: as its first format has them; the second ("gptq_v2") stores them as they are

  bool operator==(const PackW4Problem&) const = default;
};

Result<PackW4Problem> validate(const PackW4Problem& problem);
bool is_empty(const PackW4Problem& problem);
std::string describe(const PackW4Problem& problem);  // "8192 x 4096 int4 from gptq, groups of 128 with zero points, for bf16": k x n

// Bytes of a packed matrix, a multiple of 256: what a product reads of B, and the batch stride of several. 0 where n or k is.
std::int64_t packed_w4_bytes(std::int64_t n, std::int64_t k, const W4Format& format);

struct PackW4Arguments {
  const void* codes = nullptr;   // aligned to 4 bytes
  const void* scales = nullptr;  // those and others to their elements
  const void* zeros = nullptr;   // needed where the format has zero points, null where it has none. Plain ones are 0 to 16
  // GPTQ's act-order: packed row i of K is row order[i] of the codes, k values, a permutation (order_of_groups() makes it). The groups of
  // the scales are those of packed rows. The product then takes A with its columns in the same order (permute_columns()). Null: as they
  // lie.
  const std::int32_t* order = nullptr;
  void* packed = nullptr;  // packed_w4_bytes(), aligned to 256 bytes; overlaps none of the others
};

// Enqueues it on `stream` of the current device, as quantize() does: one kernel, no allocation, no synchronisation. What lies in device
// memory is not looked at before: an order that is no permutation reads elsewhere, and zero points above 16 are kept as they are. The
// kernel behind it in the stream begins when all is packed, so that a product with these weights as a constant operand may follow at once.
Status pack_w4(const PackW4Problem& problem, const PackW4Arguments& arguments, Stream stream);
// The same in host memory, by plain loops, which refuse such an order and such zero points, and by the kernel's own source on the emulated
// machine. All give the same bytes.
Status pack_w4_on_cpu(const PackW4Problem& problem, const PackW4Arguments& host_arguments, int threads = 0);
Status pack_w4_on_emulator(const PackW4Problem& problem, const PackW4Arguments& host_arguments, const EmulatorOptions& options = {});

// What the packed weights are, as the kernels see them: n rows of k elements of `type`, in host memory; of fp32, where that is e4m3 (there
// no weight is rounded: sums are scaled). Element i of a row is that of packed row i of K.
Status unpack_w4_on_cpu(std::int64_t n, std::int64_t k, const W4Format& format, DataType type, const void* host_packed, void* host_weights);

// The order of K that brings the rows of each group together: group_of[i] is the group of row i (GPTQ's g_idx), `k` values in host memory.
// Refused where a group has other than group_size rows (the last may be short).
Status order_of_groups(std::int64_t k, int group_size, const std::int32_t* host_group_of, std::int32_t* host_order);

// to[r][i] = from[r][order[i]] for m rows of k elements of 16 bits; distances between rows in elements.
struct PermuteColumnsProblem {
  std::int64_t m = 0;
  std::int64_t k = 0;
  std::int64_t ld_from = kPacked;
  std::int64_t ld_to = kPacked;
};
// As pack_w4() on all three machines. `to` overlaps neither of the others.
Status permute_columns(const PermuteColumnsProblem& problem, const void* from, const std::int32_t* order, void* to, Stream stream);
Status permute_columns_on_cpu(const PermuteColumnsProblem& problem, const void* host_from, const std::int32_t* host_order, void* host_to);
Status permute_columns_on_emulator(const PermuteColumnsProblem& problem, const void* host_from, const std::int32_t* host_order,
                                   void* host_to, const EmulatorOptions& options = {});

}  // namespace sluice
