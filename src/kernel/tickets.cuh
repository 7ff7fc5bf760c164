// WorkClaim::ticket: items are drawn from a counter in global memory, so that SMs that something else holds, or that are slower, take
// fewer. The first CTA of a cluster draws for all of it. Whoever draws the very last ticket sets the counter back to zero.
#pragma once

#include "arch/arch.cuh"
#include "core/kernel_layout.hpp"
#include "kernel/pipeline.cuh"

namespace sluice {

template <KernelConfig config>
class Tickets {
 public:
  SLUICE_DEVICE explicit Tickets(std::byte* shared)
      : slots_(arch::shared_address(shared + kLayout.ticket_offset)),
        full_(reinterpret_cast<arch::Barrier*>(shared + kLayout.ticket_barrier_offset)),
        empty_(full_ + kWorkSlots) {}

  // By one thread, before a fence and the barrier that lets the roles begin.
  SLUICE_DEVICE void init() const {
    if constexpr (kInCluster) {
      SLUICE_UNROLL
      for (int i = 0; i < kWorkSlots; ++i) {
        arch::barrier_init(&full_[i], 1);
        arch::barrier_init(&empty_[i], cluster_size(config));
        arch::note_barrier(&full_[i], "ticket full", i);
        arch::note_barrier(&empty_[i], "ticket empty", i);
      }
    }
  }

  // The next item of this cluster, `items` or more when none is left. Called by one thread of each CTA until then, and no more.
  SLUICE_DEVICE int next(std::uint32_t* counter, int items) {
    if constexpr (kInCluster)
      return next_of_cluster(counter, items);
    else
      return draw(counter, items);
  }

 private:
  static constexpr SharedMemoryLayout kLayout = shared_memory_layout(config);
  static constexpr bool kInCluster = cluster_size(config) > 1;

  SLUICE_DEVICE int next_of_cluster(std::uint32_t* counter, int items) {
    const int slot = at_.stage;
    if (arch::cta_in_cluster() == 0) {
      arch::barrier_wait(&empty_[slot], at_.parity ^ 1);  // all CTAs have read what was there
      const float ticket[4] = {arch::as_float(draw(counter, items)), 0, 0, 0};
      for (int cta = 0; cta < cluster_size(config); ++cta)
        arch::store_async(arch::in_cta(slots_ + slot * kTicketBytes, cta), ticket, arch::in_cta(arch::shared_address(&full_[slot]), cta));
    }
    arch::barrier_arrive_expect_bytes(&full_[slot], kTicketBytes);
    arch::barrier_wait(&full_[slot], at_.parity);
    std::uint32_t ticket[4];
    arch::load_shared(slots_ + slot * kTicketBytes, ticket);
    arch::barrier_arrive_in_cluster_relaxed(&empty_[slot], 0);
    at_.advance();
    return static_cast<int>(ticket[0]);
  }

  // Every cluster draws until it is told that nothing is left: `items` tickets that count and one more for each cluster.
  static SLUICE_DEVICE int draw(std::uint32_t* counter, int items) {
    const int ticket = static_cast<int>(arch::atomic_add_relaxed(counter, 1));
    if (ticket == items + arch::clusters_in_grid() - 1) arch::store_relaxed(counter, 0);
    return ticket;
  }

  arch::SharedAddress slots_;
  arch::Barrier* full_;
  arch::Barrier* empty_;
  RingPosition<kWorkSlots> at_;
};

}  // namespace sluice
