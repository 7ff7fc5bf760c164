#include <chrono>
#include <thread>

#include "occupier.hpp"

namespace sluice::gpu_tests {

struct Occupier::Words {
  unsigned stop;  // what is copied into the GPU's own word
  unsigned begun;
  unsigned gave_up;
};

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kThreads = 32;
constexpr int kSharedBytes = 227 * 1024;  // the most of a CTA: no other fits beside it

__device__ unsigned long long nanoseconds() {
  unsigned long long time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

__global__ void spin(volatile unsigned* stop, unsigned* begun, unsigned* gave_up, unsigned long long most_ns) {
  if (threadIdx.x != 0) return;
  if (begun != nullptr) {
    atomicAdd_system(begun, 1u);
    __threadfence_system();
  }
  const unsigned long long begin = nanoseconds();
  while (stop == nullptr || *stop == 0) {
    if (nanoseconds() - begin > most_ns) {
      if (gave_up != nullptr) atomicAdd_system(gave_up, 1u);
      break;
    }
    __nanosleep(5000);
  }
}

}  // namespace

// The word that ends them lies in the GPU's memory: SMs that read the host's slow down everybody's launches.
Occupier::Occupier() : stop_(sizeof(unsigned)) {
  bench::check(cudaHostAlloc(reinterpret_cast<void**>(&words_), sizeof(Words), cudaHostAllocMapped | cudaHostAllocPortable),
               "host memory that the GPU sees");
  words_->begun = 0, words_->gave_up = 0;
  bench::check(cudaFuncSetAttribute(spin, cudaFuncAttributeMaxDynamicSharedMemorySize, kSharedBytes), "reserving shared memory");
  pass_by(1, 1);  // loads the kernel: later that might wait for kernels that wait for it
  wait();
}

Occupier::~Occupier() {
  tell(1);
  cudaStreamSynchronize(stream_);
  cudaFreeHost(words_);
}

void Occupier::tell(unsigned stop) {
  words_->stop = stop;
  bench::check(cudaMemcpyAsync(stop_.data(), &words_->stop, sizeof(unsigned), cudaMemcpyHostToDevice, orders_), "telling CTAs to end");
  orders_.synchronize("telling CTAs to end");
}

bool Occupier::hold(int sms) {
  tell(0);
  words_->begun = 0, words_->gave_up = 0;
  constexpr auto kMostNs = static_cast<unsigned long long>(kMostSeconds * 1e9);
  spin<<<sms, kThreads, kSharedBytes, stream_>>>(reinterpret_cast<unsigned*>(stop_.data()), &words_->begun, &words_->gave_up, kMostNs);
  bench::check(cudaGetLastError(), "holding SMs");
  const volatile unsigned* const begun = &words_->begun;
  const auto until = Clock::now() + std::chrono::seconds(2);
  while (*begun < static_cast<unsigned>(sms)) {
    if (Clock::now() > until) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

bool Occupier::release() {
  tell(1);
  wait();
  return words_->gave_up == 0;
}

void Occupier::pass_by(int ctas, int microseconds) {
  spin<<<ctas, kThreads, kSharedBytes, stream_>>>(nullptr, nullptr, nullptr, 1000ull * static_cast<unsigned long long>(microseconds));
  bench::check(cudaGetLastError(), "passing by");
}

}  // namespace sluice::gpu_tests
