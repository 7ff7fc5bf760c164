// Attention of a few new tokens to a long cache of keys and values (decoding): docs/attention.md says how it is computed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sluice/device.hpp"
#include "sluice/emulator.hpp"
#include "sluice/error.hpp"
#include "sluice/run.hpp"
#include "sluice/types.hpp"

namespace sluice {

// How the vectors of a sequence, or of a page, lie: which of the two indices moves slower.
enum class KvLayout : std::uint8_t {
  tokens_first,  // [token][head][head_size]
  heads_first,   // [head][token][head_size]
};
const char* to_string(KvLayout layout);  // "tokens_first", "heads_first"
std::optional<KvLayout> parse_kv_layout(std::string_view text);

// For each sequence b, new token t (of query_len), query head h with key head g = h / (heads_q / heads_kv), and n = lengths[b]:
//   s[j] = scale Q[b][t][h] . K[b][j][g]                    soft_cap > 0: soft_cap tanh(s[j] / soft_cap)
//   O[b][t][h] = sum_j exp(s[j]) V[b][j][g] / sum_j exp(s[j])     lse[b][t][h] = ln sum_j exp(s[j])
// over the j in [0, n) that the token at position i = n - query_len + t sees: j <= i when causal, j > i - window when window > 0. A token
// that sees none has O = 0 and lse = -infinity. The keys and values of the new tokens are in the cache already.
struct AttentionProblem {
  std::int64_t batch = 1;      // sequences
  std::int64_t query_len = 1;  // new tokens of each, 1 to 8
  std::int64_t heads_q = 1;    // a multiple of heads_kv, 1 to 16 times it
  std::int64_t heads_kv = 1;
  std::int64_t head_size = 128;  // 64, 128 or 256; of 256, query_len times the heads of a group are 64 at most
  // No length is greater. What a sequence's length is beyond it does not count. Without pages, tokens that each sequence has room for.
  std::int64_t max_kv_len = 0;
  DataType type = DataType::bf16;     // of Q and O: bf16 or fp16
  DataType kv_type = DataType::bf16;  // of K and V: the same, or e4m3 with a scale for each head (head_size 128 and 256)
  KvLayout kv_layout = KvLayout::tokens_first;
  std::int64_t page_size = 0;  // tokens: 16, 64 or 128; 0: no pages, sequences one behind the other
  std::int64_t pages = 0;      // of them that K and V have each
  // Elements from one sequence, or page, of K (and of V) to the next. 0: they lie close. With heads_first a multiple of a head's elements.
  std::int64_t kv_stride = 0;
  double scale = 0;         // 0: 1 / sqrt(head_size)
  double soft_cap = 0;      // 0: none
  std::int64_t window = 0;  // tokens that each sees, itself among them; 0: all
  bool causal = true;
  bool lse = false;  // is written, too
  // The caller's promise that no kernel still running, or yet to run, when this one is launched writes lengths, the block table, or keys
  // and values of other tokens than each sequence's last query_len: in a model's layer they are as old as the step. They are read before
  // the kernel before this one in the stream has finished (programmatic dependent launch), which hides launch, lengths and ramp, 1 to 4 us.
  // Kernels before it that start their own successors early count as running until they have ended.
  bool constant_cache = false;

  bool operator==(const AttentionProblem&) const = default;
};

inline constexpr std::int64_t kMostQueryTokens = 8, kMostHeadsOfGroup = 16;

// The same problem with its scale and stride, or why it cannot be run.
Result<AttentionProblem> validate(const AttentionProblem& problem);

// One line: "16 sequences of up to 8192, 32 heads of 128 over 8, bf16".
std::string describe(const AttentionProblem& problem);

// How the keys of one sequence are cut. It depends on the problem and the sequence's own length alone: a sequence's result is the same, bit
// by bit, in whatever batch it comes.
struct AttentionSplit {
  int least_chunk = 512;  // tokens; 128 times a power of two
  int most_chunks = 1;    // of a sequence and a key head

  bool operator==(const AttentionSplit&) const = default;
};

struct AttentionPlan {
  AttentionProblem problem;
  AttentionSplit split;
  int rows = 8;        // of the kernel, for new tokens x heads of a group: 8, 16, 32, 64 or 128
  int ctas = 1;        // of the grid: they draw runs of chunks until none is left
  int run_levels = 0;  // a run has 2^run_levels chunks at most; longer ones leave less to bring together
  int stages = 1;      // of 64 or 128 keys or values that a CTA has in shared memory
  int shared_memory_bytes = 0;
  std::size_t workspace_bytes = 0;
  double floor_us = 0;  // for K and V at the greatest lengths to come from memory
};

Result<AttentionPlan> plan_attention(const AttentionProblem& problem, const DeviceSpec& device);

// Several lines: what was chosen, and why.
std::string explain(const AttentionPlan& plan);

// Bytes of K and V that sequences of these lengths have: what must be read.
double kv_bytes(const AttentionProblem& problem, const std::int32_t* lengths, std::int64_t batch);

struct AttentionArguments {
  const void* q = nullptr;  // [batch][query_len][heads_q][head_size], aligned to 16 bytes
  const void* k = nullptr;  // [batch or pages] of max_kv_len or page_size tokens, as kv_layout says; aligned to 16 bytes
  const void* v = nullptr;
  void* o = nullptr;                          // as q
  float* lse = nullptr;                       // [batch][query_len][heads_q]; when the problem has it
  const std::int32_t* lengths = nullptr;      // [batch]; null: all are max_kv_len
  const std::int32_t* block_table = nullptr;  // [batch][block_table_stride]: the pages of each sequence
  std::int64_t block_table_stride = 0;        // at least ceil(max_kv_len / page_size)
  const float* k_scales = nullptr;            // [heads_kv]: of e4m3, factors of K
  const float* v_scales = nullptr;            // and of V
  // Not null: it becomes 1 when a length is negative or over max_kv_len, 2 when a page's number is none. What such a page would hold counts
  // as 0 in any case, and nothing outside K and V is read.
  std::uint32_t* fault = nullptr;
};

// Once for each workspace, before the first launch uses it. Every launch leaves it as it found it, whatever lengths and problems follow one
// another, so that nothing need be done between launches or in a graph. Errors: a null workspace, CUDA errors.
Status prepare_attention_workspace(void* workspace, std::size_t workspace_bytes, Stream stream);

// Enqueues one kernel on `stream` of the current device: no allocation, no synchronisation, no hidden state. Safe from many threads, legal
// during stream capture; lengths and pages may change from replay to replay. `workspace` is device memory of at least plan.workspace_bytes,
// aligned to 256 bytes and prepared, that nothing else uses until the work is done.
// Errors: null or misaligned pointers, workspace too small, a device that is not Hopper, CUDA errors.
Status attention(const AttentionPlan& plan, const AttentionArguments& arguments, void* workspace, std::size_t workspace_bytes,
                 Stream stream);

// The same in host memory, by plain loops in double precision. `threads` of 0 takes all cores.
Status attention_on_cpu(const AttentionProblem& problem, const AttentionArguments& host_arguments, int threads = 0);

// The same by the kernel's own source on the emulated machine, in the calling thread. Errors: those of attention(); ErrorCode::emulation
// when the kernel does something wrong.
Status attention_on_emulator(const AttentionPlan& plan, const AttentionArguments& host_arguments, const EmulatorOptions& options = {});

}  // namespace sluice
