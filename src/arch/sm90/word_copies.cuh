// Single words of shared memory: fetched by a thread that does not wait for them, for what no tensor map can address, and read.
#pragma once

#include "arch/sm90/device.cuh"
#include "arch/sm90/shared_memory.cuh"

namespace sluice::arch {

// Not inside: 0 is written, and nothing read.
SLUICE_DEVICE void copy_word_async(SharedAddress destination, const float* source, bool inside) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(destination), "l"(source), "r"(inside ? 4 : 0) : "memory");
}

// Arrives when all words that this thread has asked for have come. Counts as one of the arrivals that the barrier was made for.
SLUICE_DEVICE void barrier_arrive_when_copied(Barrier* barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier)) : "memory");
}

SLUICE_DEVICE void load_shared(SharedAddress address, float (&value)[1]) {
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value[0]) : "r"(address) : "memory");
}

// Ordinary loads of a word and of half of one.
SLUICE_DEVICE void load_shared(SharedAddress address, std::uint32_t& word) {
  asm volatile("ld.shared.b32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
}
SLUICE_DEVICE void load_shared(SharedAddress address, std::uint16_t& bits) {
  asm volatile("ld.shared.b16 %0, [%1];" : "=h"(bits) : "r"(address) : "memory");
}

}  // namespace sluice::arch
