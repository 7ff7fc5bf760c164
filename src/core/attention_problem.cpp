#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "sluice/attention.hpp"

#include "core/attention_config.hpp"
#include "core/check_attention.hpp"
#include "core/check_workspace.hpp"

namespace sluice {
namespace {

// Coordinates and tickets are 32-bit numbers.
constexpr std::int64_t kMostTokens = std::int64_t{1} << 30, kMostSequences = 1 << 20;

Error invalid(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }
Error unsupported(std::string message) { return {ErrorCode::unsupported, std::move(message)}; }
std::string text(std::int64_t value) { return std::to_string(value); }

Status check_heads(const AttentionProblem& p) {
  if (p.heads_kv < 1 || p.heads_q < 1)
    return invalid("heads_q = " + text(p.heads_q) + ", heads_kv = " + text(p.heads_kv) + "; pass 1 or more");
  if (p.heads_q % p.heads_kv != 0)
    return invalid("heads_q = " + text(p.heads_q) + " is no multiple of heads_kv = " + text(p.heads_kv) +
                   "; each key head serves as many query heads");
  if (p.heads_q / p.heads_kv > kMostHeadsOfGroup)
    return unsupported("heads_q / heads_kv = " + text(p.heads_q / p.heads_kv) +
                       " is over 16; repeat key heads, or split query heads in two calls");
  if (p.heads_q > 4096) return Error{ErrorCode::too_large, "heads_q = " + text(p.heads_q) + " is over 4096; split the heads"};
  if (p.head_size != 64 && p.head_size != 128 && p.head_size != 256)
    return unsupported("head_size = " + text(p.head_size) + "; there are kernels for 64, 128 and 256: pad with zeros, and pass scale");
  if (attention_rows(p) > most_rows(static_cast<int>(p.head_size)))
    return unsupported("query_len = " + text(p.query_len) + " with " + text(p.heads_q / p.heads_kv) + " heads of " + text(p.head_size) +
                       " over one is more than the 64 rows that a kernel of that size has; split the query heads in two calls");
  return Nothing{};
}

Status check_extents(const AttentionProblem& p) {
  if (p.batch < 0) return invalid("batch = " + text(p.batch) + " is negative; pass 0 or more");
  if (p.batch > kMostSequences) return Error{ErrorCode::too_large, "batch = " + text(p.batch) + " is over 2^20; split it"};
  if (p.query_len < 1 || p.query_len > kMostQueryTokens)
    return unsupported("query_len = " + text(p.query_len) +
                       " is not in [1, 8]; this is decoding: take a prefill kernel for more new tokens");
  if (p.max_kv_len < 0) return invalid("max_kv_len = " + text(p.max_kv_len) + " is negative; pass the greatest length");
  if (p.max_kv_len > kMostTokens) return Error{ErrorCode::too_large, "max_kv_len = " + text(p.max_kv_len) + " is over 2^30"};
  if (p.window < 0 || p.window > kMostTokens) return invalid("window = " + text(p.window) + " is not in [0, 2^30]; 0 is none");
  return Nothing{};
}

Status check_types(const AttentionProblem& p) {
  if (p.type != DataType::bf16 && p.type != DataType::fp16)
    return unsupported(std::string("type = ") + to_string(p.type) + "; queries and results are bf16 or fp16");
  if (p.kv_type != p.type && p.kv_type != DataType::e4m3)
    return unsupported(std::string("kv_type = ") + to_string(p.kv_type) + " with " + to_string(p.type) +
                       " queries; keys and values have their type, or e4m3");
  if (p.kv_type == DataType::e4m3 && p.head_size == 64)
    return unsupported("kv_type = e4m3 with head_size = 64; there are kernels for 128 and 256: pad with zeros, or keep 16 bits");
  if (!std::isfinite(p.scale) || p.scale < 0)
    return invalid("scale = " + std::to_string(p.scale) + "; pass a positive one, or 0 for 1 / sqrt(head_size)");
  if (!std::isfinite(p.soft_cap) || p.soft_cap < 0)
    return invalid("soft_cap = " + std::to_string(p.soft_cap) + "; pass a positive one, or 0 for none");
  return Nothing{};
}

Status check_pages(const AttentionProblem& p) {
  if (p.page_size != 0 && p.page_size != 16 && p.page_size != 64 && p.page_size != 128)
    return unsupported("page_size = " + text(p.page_size) + "; pages have 16, 64 or 128 tokens, 0 is for none");
  if (p.page_size == 0 && p.pages != 0) return invalid("pages = " + text(p.pages) + " without page_size; pass 0, or the tokens of a page");
  if (p.page_size != 0 && (p.pages < 1 || p.pages > kMostTokens))
    return invalid("pages = " + text(p.pages) + " is not in [1, 2^30]; pass how many pages K has");
  return Nothing{};
}

std::int64_t block_tokens(const AttentionProblem& p) { return p.page_size == 0 ? p.max_kv_len : p.page_size; }

Status check_stride(const AttentionProblem& p) {
  const std::int64_t head_elems = block_tokens(p) * p.head_size, least = head_elems * p.heads_kv;
  if (p.kv_stride < least)
    return invalid("kv_stride = " + text(p.kv_stride) + " is less than the " + text(least) +
                   " elements of a sequence or page; pass 0 for packed");
  if (p.kv_layout == KvLayout::heads_first && head_elems > 0 && p.kv_stride % head_elems != 0)
    return unsupported("kv_stride = " + text(p.kv_stride) + " with heads first is no multiple of a head's " + text(head_elems) +
                       " elements; pad");
  const int bytes = size_bytes(p.kv_type);
  if (p.kv_stride * bytes % 16 != 0)
    return Error{ErrorCode::misaligned, "kv_stride = " + text(p.kv_stride) + " is no multiple of 16 bytes; pad to " +
                                            text((p.kv_stride * bytes + 15) / 16 * 16 / bytes)};
  const std::int64_t blocks = p.page_size == 0 ? p.batch : p.pages;
  const std::int64_t steps = p.kv_layout == KvLayout::heads_first && head_elems > 0 ? p.kv_stride / head_elems : 1;
  if ((blocks + 1) * steps > (std::int64_t{1} << 31) - 1)
    return Error{ErrorCode::too_large,
                 text(blocks) + " sequences or pages times " + text(steps) + " heads are over 2^31; put tokens first"};
  return Nothing{};
}

Status check_pointer(const char* name, const void* pointer, int alignment, const char* holds) {
  if (pointer == nullptr) return invalid(std::string(name) + " is null; pass memory for " + holds);
  const auto behind = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(pointer) % static_cast<std::uintptr_t>(alignment));
  if (behind == 0) return Nothing{};
  return Error{ErrorCode::misaligned,
               std::string(name) + " lies " + text(behind) + " bytes behind a multiple of " + text(alignment) + "; move it"};
}

}  // namespace

const char* to_string(KvLayout layout) { return layout == KvLayout::tokens_first ? "tokens_first" : "heads_first"; }
std::optional<KvLayout> parse_kv_layout(std::string_view name) {
  for (const KvLayout layout : {KvLayout::tokens_first, KvLayout::heads_first})
    if (name == to_string(layout)) return layout;
  return std::nullopt;
}

Result<AttentionProblem> validate(const AttentionProblem& problem) {
  AttentionProblem p = problem;
  // Enumerators come through the C ABI as plain numbers.
  if (p.kv_layout > KvLayout::heads_first) return invalid("kv_layout is none of the enumeration's values; see attention.hpp");
  for (const auto check : {check_extents, check_heads, check_types, check_pages})
    if (Status s = check(p); !s) return s.error();
  if (p.kv_stride == 0) p.kv_stride = block_tokens(p) * p.head_size * p.heads_kv;
  if (Status s = check_stride(p); !s) return s.error();
  if (p.scale == 0) p.scale = 1 / std::sqrt(static_cast<double>(p.head_size));
  return p;
}

std::string describe(const AttentionProblem& p) {
  std::string line = text(p.batch) + (p.batch == 1 ? " sequence" : " sequences") + " of up to " + text(p.max_kv_len) + ", " +
                     text(p.heads_q) + " heads of " + text(p.head_size) + " over " + text(p.heads_kv) + ", " + to_string(p.type);
  if (p.kv_type != p.type) line += std::string(", keys and values of ") + to_string(p.kv_type);
  if (p.query_len != 1) line += ", " + text(p.query_len) + " new tokens";
  if (p.kv_layout == KvLayout::heads_first) line += ", heads first";
  if (p.page_size != 0) line += ", pages of " + text(p.page_size);
  if (p.window != 0) line += ", window of " + text(p.window);
  if (p.soft_cap != 0) line += ", soft cap " + std::to_string(p.soft_cap);
  if (!p.causal) line += ", not causal";
  if (p.constant_cache) line += ", constant cache";
  return line;
}

double kv_bytes(const AttentionProblem& p, const std::int32_t* lengths, std::int64_t batch) {
  double tokens = 0;
  for (std::int64_t b = 0; b < batch; ++b) {
    const auto length = static_cast<double>(lengths == nullptr ? p.max_kv_len : lengths[b]);
    const double unseen = p.window > 0 ? length - static_cast<double>(p.query_len + p.window) + 1 : 0;
    tokens += unseen > 0 ? length - unseen : length;
  }
  return tokens * 2 * static_cast<double>(p.heads_kv * p.head_size) * size_bytes(p.kv_type);
}

Status check_arguments(const AttentionProblem& p, const AttentionArguments& a) {
  if (p.batch == 0) return Nothing{};
  const bool cached = p.max_kv_len > 0;
  if (Status s = check_pointer("q", a.q, 16, "the queries"); !s) return s;
  if (Status s = check_pointer("o", a.o, 16, "the result"); !s) return s;
  if (cached)
    if (Status s = check_pointer("k", a.k, 16, "the keys"); !s) return s;
  if (cached)
    if (Status s = check_pointer("v", a.v, 16, "the values"); !s) return s;
  if (p.lse)
    if (Status s = check_pointer("lse", a.lse, 4, "the logarithms, or clear AttentionProblem::lse"); !s) return s;
  if (a.lengths != nullptr)
    if (Status s = check_pointer("lengths", a.lengths, 4, "the lengths"); !s) return s;
  if (p.page_size != 0) {
    if (Status s = check_pointer("block_table", a.block_table, 4, "the pages of each sequence"); !s) return s;
    const std::int64_t needed = (p.max_kv_len + p.page_size - 1) / p.page_size;
    if (a.block_table_stride < needed)
      return invalid("block_table_stride = " + text(a.block_table_stride) + " is less than the " + text(needed) +
                     " pages of max_kv_len tokens");
  }
  if (p.kv_type == DataType::e4m3) {
    if (Status s = check_pointer("k_scales", a.k_scales, 4, "a factor of K for each head"); !s) return s;
    if (Status s = check_pointer("v_scales", a.v_scales, 4, "a factor of V for each head"); !s) return s;
  }
  return Nothing{};
}

Result<AttentionProblem> check_plan(const AttentionPlan& plan, const void* workspace, std::size_t workspace_bytes) {
  Result<AttentionProblem> valid = validate(plan.problem);
  if (!valid) return valid;
  const AttentionConfig config = attention_config(*valid);
  if (plan.split.least_chunk < kChunkGrain || !std::has_single_bit(static_cast<unsigned>(plan.split.least_chunk)) ||
      plan.split.most_chunks < 1 || plan.split.most_chunks > 1 << kMostRunLevels || plan.stages < 2 || plan.stages > kMostStages ||
      plan.ctas < 1 || plan.ctas > kMostCtas || plan.run_levels < 0 || plan.run_levels > kMostRunLevels || plan.rows != config.rows ||
      plan.shared_memory_bytes != attention_layout(config, attention_rows(*valid), plan.stages, plan.run_levels).bytes ||
      plan.workspace_bytes < attention_workspace_bytes(plan))
    return invalid("the plan was not made for its problem; take one from plan_attention()");
  if (valid->batch == 0) return valid;
  if (Status s = check_workspace(workspace, workspace_bytes, plan.workspace_bytes, "AttentionPlan::workspace_bytes"); !s) return s.error();
  if (reinterpret_cast<std::uintptr_t>(workspace) % kWorkspaceAlignment != 0)
    return Error{ErrorCode::misaligned, "the workspace must lie at a multiple of 256 bytes; move it"};
  return valid;
}

}  // namespace sluice
