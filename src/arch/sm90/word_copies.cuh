// Single words fetched into shared memory by a thread that does not wait for them: what no tensor map can address.
#pragma once

#include "arch/sm90/device.cuh"
#include "arch/sm90/tma.cuh"

namespace sluice::arch {

// Not inside: 0 is written, and nothing read.
SLUICE_DEVICE void copy_word_async(SharedAddress destination, const float* source, bool inside) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(destination), "l"(source), "r"(inside ? 4 : 0) : "memory");
}

// Arrives when all words that this thread has asked for have come. Counts as one of the arrivals that the barrier was made for.
SLUICE_DEVICE void barrier_arrive_when_copied(Barrier* barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier)) : "memory");
}

}  // namespace sluice::arch
