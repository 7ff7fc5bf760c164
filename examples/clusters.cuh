// What both programs about clusters need: a Hopper GPU or a clear end, launches in clusters, and a cluster's instructions by their names.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <type_traits>

namespace clusters {

constexpr int kNoHopper = 77;  // exit status; its test takes it as skipped

inline void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

// The device in use, or the end of the program.
inline cudaDeviceProp hopper_or_exit(const char* program) {
  cudaDeviceProp device{};
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    std::fprintf(stderr, "%s: no usable GPU; clusters need one of compute capability 9.0 (Hopper)\n", program);
    std::exit(kNoHopper);
  }
  check(cudaGetDeviceProperties(&device, 0), "asking for the device");
  if (device.major == 9 && device.minor == 0) return device;
  std::fprintf(stderr, "%s: %s has compute capability %d.%d; this program is compiled for 9.0 (Hopper) alone\n", program, device.name,
               device.major, device.minor);
  std::exit(kNoHopper);
}

// A launch of as many clusters as the GPU holds at once.
struct Launch {
  const void* kernel;
  int cluster = 1;  // CTAs
  int threads = 1024;
  int shared_bytes = 0;
  cudaStream_t stream = nullptr;
};

class ClusterLaunch {
 public:
  explicit ClusterLaunch(const Launch& wanted) {
    check(cudaFuncSetAttribute(wanted.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, wanted.shared_bytes), "reserving shared memory");
    // More than 8 CTAs are not promised by every GPU that knows clusters, so a kernel must ask for the right to them.
    check(cudaFuncSetAttribute(wanted.kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1), "asking for large clusters");
    attribute_.id = cudaLaunchAttributeClusterDimension;
    attribute_.val.clusterDim.x = static_cast<unsigned>(wanted.cluster);
    attribute_.val.clusterDim.y = attribute_.val.clusterDim.z = 1;
    config_.gridDim = dim3(static_cast<unsigned>(wanted.cluster));
    config_.blockDim = dim3(static_cast<unsigned>(wanted.threads));
    config_.dynamicSmemBytes = static_cast<std::size_t>(wanted.shared_bytes);
    config_.stream = wanted.stream;
    config_.attrs = &attribute_;
    config_.numAttrs = 1;
    int fit = 0;
    if (cudaOccupancyMaxActiveClusters(&fit, wanted.kernel, &config_) != cudaSuccess) {
      static_cast<void>(cudaGetLastError());  // a cluster that this GPU does not know
      fit = 0;
    }
    kernel_ = wanted.kernel;
    ctas_ = fit * wanted.cluster;
    config_.gridDim = dim3(static_cast<unsigned>(std::max(ctas_, 1)));
  }
  ClusterLaunch(const ClusterLaunch&) = delete;  // config_ points into it
  ClusterLaunch& operator=(const ClusterLaunch&) = delete;

  int ctas() const { return ctas_; }  // 0: the GPU holds no such cluster

  // Of a grid of `ctas` at most.
  void limit(int ctas) {
    ctas_ = std::min(ctas_, ctas);
    config_.gridDim = dim3(static_cast<unsigned>(ctas_));
  }

  template <class... Parameters, class... Arguments>
  void run(void (*)(Parameters...), Arguments... arguments) {
    void* pointers[] = {&arguments...};
    static_assert((std::is_same_v<Parameters, Arguments> && ...), "a kernel's arguments are passed as they are");
    check(cudaLaunchKernelExC(&config_, kernel_, pointers), "kernel launch");
  }

 private:
  const void* kernel_;
  int ctas_;
  cudaLaunchConfig_t config_{};
  cudaLaunchAttribute attribute_{};
};

#ifdef __CUDACC__
// A CTA's place in its cluster.
__device__ inline unsigned rank_in_cluster() {
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
__device__ inline unsigned ctas_in_cluster() {
  unsigned ctas;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(ctas));
  return ctas;
}

// Opaque: the compiler would work the address out anew at each use, from a special register that takes long to read.
__device__ inline unsigned shared_address(const void* shared) {
  unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  asm volatile("" : "+r"(address));
  return address;
}

// Where CTA `rank` of the cluster has what this CTA has at `address`.
__device__ inline unsigned in_cta(unsigned address, unsigned rank) {
  unsigned there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
  return there;
}

// cluster.sync() in its two halves. What a thread wrote before it arrives is seen by all threads of the cluster behind their wait.
__device__ inline void arrive_in_cluster() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
__device__ inline void wait_for_cluster() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }
__device__ inline void sync_cluster() {
  arrive_in_cluster();
  wait_for_cluster();
}

// One more in a word of this CTA, and in one of any CTA of the cluster. No answer is asked for, so the thread goes on at once.
__device__ inline void increment_own(unsigned address) {
  asm volatile("red.relaxed.cta.shared::cta.add.u32 [%0], 1;" ::"r"(address) : "memory");
}
__device__ inline void increment_in_cluster(unsigned address) {
  asm volatile("red.relaxed.cluster.shared::cluster.add.u32 [%0], 1;" ::"r"(address) : "memory");
}
#endif

}  // namespace clusters
