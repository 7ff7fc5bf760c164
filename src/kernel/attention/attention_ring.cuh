// The stages of keys and values, in turn, and the queries: what producer and consumers share.
#pragma once

#include "arch/warp_mma.cuh"
#include "core/attention_config.hpp"
#include "kernel/attention/attention_params.hpp"
#include "kernel/attention/work_list.cuh"

namespace sluice {

struct AttentionPosition {
  int stage = 0;
  std::uint32_t parity = 0;

  SLUICE_DEVICE void advance(int stages) {
    if (++stage < stages) return;
    stage = 0;
    parity ^= 1;
  }
};

template <AttentionConfig config>
class AttentionRing {
 public:
  SLUICE_DEVICE AttentionRing(const AttentionParams& params, std::byte* shared)
      : layout_(attention_layout(config, params.rows, params.stages, params.run_levels)), stages_(params.stages), shared_(shared) {}

  // By one thread, before a fence and the barrier that lets the roles begin.
  SLUICE_DEVICE void init() const {
    const auto make = [](arch::Barrier* barrier, int arrivals, const char* name, int index) {
      arch::barrier_init(barrier, arrivals);
      arch::note_barrier(barrier, name, index);
    };
    for (int i = 0; i < stages_; ++i) {
      make(&barriers()[i], 1, "full", i);
      make(&barriers()[stages_ + i], consumer_warps(config), "empty", i);
    }
    for (int i = 0; i < q_slots(config); ++i) {
      make(&barriers()[2 * stages_ + i], 1, "queries full", i);
      make(&barriers()[2 * stages_ + q_slots(config) + i], consumer_warps(config), "queries empty", i);
    }
    for (int i = 0; i < kItemSlots; ++i) {
      make(item_barriers() + i, 1, "item full", i);
      make(item_barriers() + kItemSlots + i, 1, "item empty", i);
    }
  }

  SLUICE_DEVICE arch::Barrier* full(const AttentionPosition& at) const { return &barriers()[at.stage]; }
  SLUICE_DEVICE arch::Barrier* empty(const AttentionPosition& at) const { return &barriers()[stages_ + at.stage]; }
  SLUICE_DEVICE arch::Barrier* q_full(const AttentionPosition& at) const { return &barriers()[2 * stages_ + at.stage]; }
  SLUICE_DEVICE arch::Barrier* q_empty(const AttentionPosition& at) const { return &barriers()[2 * stages_ + q_slots(config) + at.stage]; }
  SLUICE_DEVICE arch::Barrier* item_full(const AttentionPosition& at) const { return item_barriers() + at.stage; }
  SLUICE_DEVICE arch::Barrier* item_empty(const AttentionPosition& at) const { return item_barriers() + kItemSlots + at.stage; }
  SLUICE_DEVICE void wait_empty(const AttentionPosition& at) const { arch::barrier_wait(empty(at), at.parity ^ 1); }
  SLUICE_DEVICE void wait_full(const AttentionPosition& at) const { arch::barrier_wait(full(at), at.parity); }

  SLUICE_DEVICE arch::SharedAddress base() const { return arch::shared_address(shared_); }
  SLUICE_DEVICE std::byte* pointer(arch::SharedAddress address) const { return shared_ + (address - base()); }
  SLUICE_DEVICE arch::SharedAddress stage(const AttentionPosition& at) const { return base() + at.stage * stage_bytes(config); }
  SLUICE_DEVICE arch::SharedAddress q_slot(const AttentionPosition& at) const {
    return base() + layout_.q_offset + at.stage * q_slot_bytes(config);
  }
  SLUICE_DEVICE arch::SharedAddress header(const AttentionPosition& at) const {
    return base() + layout_.header_offset + at.stage * static_cast<int>(sizeof(AttentionStageHeader));
  }
  SLUICE_DEVICE arch::SharedAddress meeting() const { return base() + layout_.meeting_offset; }
  SLUICE_DEVICE arch::SharedAddress tree() const { return base() + layout_.tree_offset; }
  SLUICE_DEVICE arch::SharedAddress statistics() const { return base() + layout_.statistics_offset; }

  SLUICE_DEVICE void write_item(const AttentionPosition& at, const AttentionItem& item) const {
    const std::uint32_t low[4] = {static_cast<std::uint32_t>(item.sequence), static_cast<std::uint32_t>(item.head),
                                  static_cast<std::uint32_t>(item.length), static_cast<std::uint32_t>(item.first_token)};
    const std::uint32_t high[4] = {static_cast<std::uint32_t>(item.chunk_tokens), static_cast<std::uint32_t>(item.chunks),
                                   static_cast<std::uint32_t>(item.slot), static_cast<std::uint32_t>(item.merge_counts)};
    arch::store_shared(item_slot(at), low);
    arch::store_shared(item_slot(at) + 16, high);
  }
  SLUICE_DEVICE AttentionItem read_item(const AttentionPosition& at) const {
    std::uint32_t low[4], high[4];
    arch::load_shared(item_slot(at), low);
    arch::load_shared(item_slot(at) + 16, high);
    return {.sequence = static_cast<int>(low[0]),
            .head = static_cast<int>(low[1]),
            .length = static_cast<int>(low[2]),
            .first_token = static_cast<int>(low[3]),
            .chunk_tokens = static_cast<int>(high[0]),
            .chunks = static_cast<int>(high[1]),
            .slot = static_cast<int>(high[2]),
            .merge_counts = static_cast<int>(high[3])};
  }

 private:
  SLUICE_DEVICE arch::Barrier* item_barriers() const { return &barriers()[2 * stages_ + 2 * q_slots(config)]; }
  SLUICE_DEVICE arch::SharedAddress item_slot(const AttentionPosition& at) const {
    return base() + layout_.item_offset + at.stage * kItemBytes;
  }
  SLUICE_DEVICE arch::Barrier* barriers() const { return reinterpret_cast<arch::Barrier*>(shared_ + layout_.barrier_offset); }

  AttentionLayout layout_;
  int stages_;
  std::byte* shared_;
};

}  // namespace sluice
