// attention_on_emulator(): binds host pointers to a plan and runs its kernel on the emulated machine.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "sluice/attention.hpp"

#include "core/attention_config.hpp"
#include "core/check_attention.hpp"
#include "kernel/attention/attention_entry.hpp"
#include "launch/bind_attention.hpp"
#include "launch/emulator/run_on_machine.hpp"

namespace sluice {
namespace {

namespace emulated = arch::emulated;

Result<arch::TensorMap> encode_tensor_map(const GlobalTensor& tensor, BoxShape box) {
  const int bytes = size_bytes(tensor.type);
  const emulated::Element element = tensor.type == DataType::bf16   ? emulated::Element::bf16
                                    : tensor.type == DataType::fp16 ? emulated::Element::fp16
                                                                    : emulated::Element::byte;
  try {
    return emulated::encode_tensor_map({.data = tensor.data,
                                        .element = element,
                                        .extents = {tensor.inner, tensor.outer, tensor.matrices},
                                        .strides_bytes = {tensor.leading_elems * bytes, tensor.matrix_stride_elems * bytes},
                                        .box = {box.inner, box.outer, box.matrices},
                                        .swizzle_bytes = box.inner * bytes});
  } catch (const std::exception& broken) {
    return Error{ErrorCode::emulation, std::string(tensor.name) + ": " + broken.what()};
  }
}

// Where each sequence's new tokens lie in K and V: what the kernel before may have written of a constant cache.
std::vector<emulated::ByteRange> fresh_tokens(const AttentionProblem& p, const AttentionArguments& a) {
  std::vector<emulated::ByteRange> all;
  if (!p.constant_cache) return all;
  const bool paged = p.page_size != 0, tokens_first = p.kv_layout == KvLayout::tokens_first;
  const std::int64_t vector_bytes = p.head_size * size_bytes(p.kv_type), block_tokens = paged ? p.page_size : p.max_kv_len;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const std::int64_t length = a.lengths == nullptr ? p.max_kv_len : std::clamp<std::int64_t>(a.lengths[b], 0, p.max_kv_len);
    for (std::int64_t token = std::max<std::int64_t>(0, length - p.query_len); token < length; ++token)
      for (std::int64_t head = 0; head < p.heads_kv; ++head) {
        const std::int64_t block = paged ? a.block_table[b * a.block_table_stride + token / block_tokens] : b,
                           in_block = token % block_tokens;
        if (paged && (block < 0 || block >= p.pages)) continue;
        const std::int64_t vector = tokens_first ? in_block * p.heads_kv + head : head * block_tokens + in_block;
        const auto first = static_cast<std::size_t>(block * p.kv_stride * size_bytes(p.kv_type) + vector * vector_bytes);
        all.push_back({.first = first, .end = first + static_cast<std::size_t>(vector_bytes)});
      }
  }
  return all;
}

std::vector<emulated::GlobalBuffer> buffers(const AttentionProblem& p, const AttentionArguments& a, std::span<std::byte> workspace) {
  const auto bytes_of = [](std::int64_t elems, int size) { return static_cast<std::size_t>(elems) * static_cast<std::size_t>(size); };
  const std::int64_t rows = p.batch * p.query_len * p.heads_q, blocks = p.page_size == 0 ? p.batch : p.pages;
  // The last sequence or page ends with its heads.
  const std::int64_t tokens = p.page_size == 0 ? p.max_kv_len : p.page_size;
  const std::size_t kv = bytes_of((blocks - 1) * p.kv_stride + tokens * p.heads_kv * p.head_size, size_bytes(p.kv_type));
  std::vector<emulated::GlobalBuffer> all = {{.name = "q", .data = a.q, .bytes = bytes_of(rows * p.head_size, 2)},
                                             {.name = "o", .data = a.o, .bytes = bytes_of(rows * p.head_size, 2), .writable = true},
                                             {.name = "workspace", .data = workspace.data(), .bytes = workspace.size(), .writable = true}};
  if (p.max_kv_len > 0) {
    all.push_back({.name = "k", .data = a.k, .bytes = kv, .constant = p.constant_cache, .fresh = fresh_tokens(p, a)});
    all.push_back({.name = "v", .data = a.v, .bytes = kv, .constant = p.constant_cache, .fresh = fresh_tokens(p, a)});
  }
  if (p.lse) all.push_back({.name = "lse", .data = a.lse, .bytes = bytes_of(rows, 4), .writable = true});
  if (a.lengths != nullptr)
    all.push_back({.name = "lengths", .data = a.lengths, .bytes = bytes_of(p.batch, 4), .constant = p.constant_cache});
  if (p.page_size != 0)
    all.push_back(
        {.name = "block_table", .data = a.block_table, .bytes = bytes_of(p.batch * a.block_table_stride, 4), .constant = p.constant_cache});
  if (p.kv_type == DataType::e4m3) {
    all.push_back({.name = "k_scales", .data = a.k_scales, .bytes = bytes_of(p.heads_kv, 4)});
    all.push_back({.name = "v_scales", .data = a.v_scales, .bytes = bytes_of(p.heads_kv, 4)});
  }
  if (a.fault != nullptr) all.push_back({.name = "fault", .data = a.fault, .bytes = 4, .writable = true});
  return all;
}

// The kernel leaves the workspace as it found it.
Status check_restored(std::span<const std::byte> workspace) {
  for (std::size_t i = 0; i < workspace.size(); ++i)
    if (workspace[i] != std::byte{0xff})
      return Error{ErrorCode::emulation, "attention: byte " + std::to_string(i) + " of the workspace is not left as it was found"};
  return Nothing{};
}

}  // namespace

Status attention_on_emulator(const AttentionPlan& given, const AttentionArguments& arguments, const EmulatorOptions& options) {
  // As prepare_attention_workspace() makes it.
  std::vector<std::byte> memory(given.workspace_bytes + kWorkspaceAlignment, std::byte{0xff});
  const std::size_t behind = reinterpret_cast<std::uintptr_t>(memory.data()) % kWorkspaceAlignment;
  const std::span<std::byte> workspace(memory.data() + (kWorkspaceAlignment - behind), given.workspace_bytes);
  const Result<AttentionProblem> valid = check_plan(given, workspace.data(), workspace.size());
  if (!valid) return valid.error();
  AttentionPlan plan = given;
  plan.problem = *valid;
  if (Status s = check_arguments(*valid, arguments); !s) return s;
  if (Status s = check_options(options); !s) return s;
  if (valid->batch == 0) return Nothing{};
  const Result<AttentionParams> params = sluice::bind(plan, arguments, workspace.data(), encode_tensor_map);
  if (!params) return params.error();
  const AttentionConfig config = attention_config(*valid);
  const emulated::Launch launch{.clusters = plan.ctas,
                                .threads_per_cta = attention_threads(config),
                                .shared_memory_bytes = plan.shared_memory_bytes,
                                .buffers = buffers(*valid, arguments, workspace)};
  const EmulatedAttentionKernel kernel =
      find_attention_kernel(config, []<AttentionConfig listed>() { return emulated_attention_kernel<listed>(); });
  if (Status s = run_on_machine("attention", launch, options, [&] { kernel(*params); }); !s) return s;
  return check_restored(workspace);
}

}  // namespace sluice
