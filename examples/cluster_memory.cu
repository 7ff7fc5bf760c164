// cluster_memory
//
// What the shared memory of a cluster's neighbours costs: reading it, writing to it, adding to it, waiting for each other, and the same
// exchange through L2. Prints lines of `name value unit`, where the last number of a name is the size of the cluster; values are medians
// over CTAs while all SMs do the same. docs/clusters.md says what follows.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "clusters.cuh"

namespace {

using clusters::arrive_in_cluster;
using clusters::check;
using clusters::in_cta;
using clusters::rank_in_cluster;
using clusters::sync_cluster;
using clusters::wait_for_cluster;

constexpr unsigned kThreads = 512;
constexpr unsigned kBufferBytes = 65536;
constexpr unsigned kPasses = 15;  // an mbarrier counts to 2^20 - 1 bytes: 15 buffers are the most that one phase takes
constexpr unsigned kPerThread = kBufferBytes / 16 / kThreads;  // vectors of 16 bytes
constexpr int kTurns = 256;                                    // of what is timed one by one
constexpr unsigned kAdditions = 512;                           // of a thread

// Of each CTA: the clocks that it took, twice where a kernel times two things, and whether what it got is wrong.
struct Result {
  unsigned clocks[4];
  unsigned wrong;
};

struct Vector {
  unsigned x, y, z, w;
};

// volatile to ptxas, too, which would read what nobody writes only once.
__device__ Vector load_in_cluster(unsigned address) {
  Vector v;
  asm volatile("ld.volatile.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
  return v;
}
__device__ void store_in_cluster(unsigned address, const Vector& v) {
  asm volatile("st.shared::cluster.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}
__device__ Vector load_own(unsigned address) {
  Vector v;
  asm volatile("ld.shared::cta.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(address) : "memory");
  return v;
}

__device__ void mbarrier_init(unsigned barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n\tfence.mbarrier_init.release.cluster;" ::"r"(barrier) : "memory");
}
__device__ void mbarrier_expect(unsigned barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
__device__ void mbarrier_wait(unsigned barrier) {
  unsigned done = 0;
  while (done == 0)
    asm volatile(
        "{\n\t.reg .pred done;\n\t"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%1], 0;\n\t"
        "selp.u32 %0, 1, 0, done;\n\t}"
        : "=r"(done)
        : "r"(barrier)
        : "memory");
}

// What CTA `rank` has at vector `i` of its buffer.
__device__ unsigned pattern(unsigned rank, unsigned i) { return (blockIdx.x - rank_in_cluster() + rank) * 0x9e3779b9u + i; }

__device__ unsigned clocks_since(std::int64_t begin) { return static_cast<unsigned>(clock64() - begin); }

// The first thread's clocks, which end behind a barrier of the CTA.
__device__ void report(Result* results, int which, unsigned clocks) {
  if (threadIdx.x == 0) results[blockIdx.x].clocks[which] = clocks;
}
__device__ void report_wrong(Result* results, bool wrong) {
  if (wrong) atomicAdd(&results[blockIdx.x].wrong, 1u);
}

__device__ void fill(unsigned* buffer) {
  const unsigned rank = rank_in_cluster();
  for (unsigned i = threadIdx.x; i < kBufferBytes / 4; i += kThreads) buffer[i] = pattern(rank, i / 4);
}

// ---- Streams: each CTA reads the buffer of the next CTA, or writes to it, kPasses times.

__global__ void __launch_bounds__(kThreads) pull(Result* results) {
  extern __shared__ __align__(128) unsigned buffer[];
  fill(buffer);
  sync_cluster();
  const unsigned next = (rank_in_cluster() + 1) % clusters::ctas_in_cluster();
  const unsigned from = in_cta(clusters::shared_address(buffer), next) + 16 * threadIdx.x;
  unsigned sum = 0, wanted = 0;
  const std::int64_t begin = clock64();
  for (unsigned pass = 0; pass < kPasses; ++pass) {
    Vector v[kPerThread];
#pragma unroll
    for (unsigned i = 0; i < kPerThread; ++i) v[i] = load_in_cluster(from + i * 16 * kThreads);
#pragma unroll
    for (unsigned i = 0; i < kPerThread; ++i) sum += v[i].x ^ v[i].y ^ v[i].z ^ v[i].w ^ v[i].x;
  }
  __syncthreads();
  report(results, 0, clocks_since(begin));
  for (unsigned i = 0; i < kPerThread; ++i) wanted += pattern(next, threadIdx.x + i * kThreads);
  // x ^ y ^ z ^ w of four equal words is 0, and one more x is left.
  report_wrong(results, sum != wanted * kPasses);
  sync_cluster();  // nobody may leave whose memory is read
}

enum class Push { stores, st_async, bulk };

template <Push way>
__global__ void __launch_bounds__(kThreads) push(Result* results) {
  extern __shared__ __align__(128) unsigned buffers[];  // what comes, and, for bulk copies, what goes
  __shared__ std::uint64_t arrived;
  const unsigned ctas = clusters::ctas_in_cluster(), rank = rank_in_cluster(), next = (rank + 1) % ctas, before = (rank + ctas - 1) % ctas;
  const unsigned own_barrier = clusters::shared_address(&arrived), own = clusters::shared_address(buffers);
  if (way == Push::bulk) {
    fill(buffers + kBufferBytes / 4);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the copy engine reads what threads wrote
  }
  if (way != Push::stores && threadIdx.x == 0) {
    mbarrier_init(own_barrier);
    mbarrier_expect(own_barrier, kPasses * kBufferBytes);
  }
  sync_cluster();
  const unsigned to = in_cta(own, next) + 16 * threadIdx.x, barrier = in_cta(own_barrier, next);
  const std::int64_t begin = clock64();
  if (way == Push::bulk) {
    if (threadIdx.x == 0)
      for (unsigned pass = 0; pass < kPasses; ++pass)
        asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                     "r"(own + kBufferBytes), "r"(kBufferBytes), "r"(barrier)
                     : "memory");
  } else {
    for (unsigned pass = 0; pass < kPasses; ++pass) {
#pragma unroll
      for (unsigned i = 0; i < kPerThread; ++i) {
        const unsigned word = pattern(rank, threadIdx.x + i * kThreads), address = to + i * 16 * kThreads;
        if (way == Push::stores)
          store_in_cluster(address, {word, word, word, word});
        else
          asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %1, %1, %1}, [%2];" ::"r"(address),
                       "r"(word), "r"(barrier)
                       : "memory");
      }
    }
  }
  // Until what comes to this CTA is there: the barrier of plain stores is the cluster's, of the others an mbarrier that counts bytes.
  if (way == Push::stores)
    sync_cluster();
  else
    mbarrier_wait(own_barrier);
  __syncthreads();
  report(results, 0, clocks_since(begin));
  bool wrong = false;
  for (unsigned i = threadIdx.x; i < kBufferBytes / 16; i += kThreads) {
    const Vector v = load_own(own + 16 * i);
    wrong = wrong || v.x != pattern(before, i) || v.w != pattern(before, i);
  }
  report_wrong(results, wrong);
  sync_cluster();
}

// ---- Additions whose answer nobody asks for: neighbouring lanes at neighbouring words, of this CTA, of the next, and of all in turn.

enum class Add { own, next, all };

template <Add where>
__global__ void __launch_bounds__(kThreads) additions(Result* results) {
  extern __shared__ __align__(128) unsigned words[];
  for (unsigned i = threadIdx.x; i < kBufferBytes / 4; i += kThreads) words[i] = 0;
  sync_cluster();
  const unsigned ctas = clusters::ctas_in_cluster(), rank = rank_in_cluster(), own = clusters::shared_address(words);
  const unsigned next = in_cta(own, (rank + 1) % ctas);
  const std::int64_t begin = clock64();
#pragma unroll 8
  for (unsigned i = 0; i < kAdditions; ++i) {
    // Every warp is at words of its own, and goes on by 32: no two lanes meet at a word or a bank.
    const unsigned offset = (threadIdx.x + i * 32) * 4 % kBufferBytes;
    if (where == Add::own)
      clusters::increment_own(own + offset);
    else
      clusters::increment_in_cluster((where == Add::next ? next : in_cta(own, (threadIdx.x + i) % ctas)) + offset);
  }
  sync_cluster();  // behind it all additions are done
  report(results, 0, clocks_since(begin));
  unsigned sum = 0;
  for (unsigned i = threadIdx.x; i < kBufferBytes / 4; i += kThreads) sum += words[i];
  __shared__ unsigned total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  atomicAdd(&total, sum);
  __syncthreads();
  report_wrong(results, total != kThreads * kAdditions);
  sync_cluster();
}

// ---- Latencies.

// One thread follows addresses through the next CTA's memory, then through its own. The last load is not waited for: one of kTurns.
__global__ void __launch_bounds__(32) follow(Result* results) {
  __shared__ unsigned chain[kTurns];
  const unsigned own = clusters::shared_address(chain), there = in_cta(own, (rank_in_cluster() + 1) % clusters::ctas_in_cluster());
  for (unsigned i = threadIdx.x; i < kTurns; i += 32) chain[i] = (i * 33 + 1) % kTurns * 4;
  sync_cluster();
  if (threadIdx.x == 0) {
    unsigned offset = 0;
    std::int64_t begin = clock64();
    for (int i = 0; i < kTurns; ++i) asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(offset) : "r"(there + offset) : "memory");
    const unsigned far = clocks_since(begin);
    begin = clock64();
    for (int i = 0; i < kTurns; ++i) asm volatile("ld.shared::cta.u32 %0, [%1];" : "=r"(offset) : "r"(own + offset) : "memory");
    const unsigned near = clocks_since(begin);
    report(results, 0, far);
    report(results, 1, near);
    report_wrong(results, offset % 4 != 0);
  }
  sync_cluster();
}

// Work that needs nothing from the others: each step waits for the one before it.
__device__ unsigned work(unsigned x) {
#pragma unroll 1
  for (int i = 0; i < 16; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) asm volatile("mad.lo.u32 %0, %0, %0, 1;" : "+r"(x));
  }
  return x;
}

// cluster.sync alone, the work alone, one after the other, and the work between arrive and wait.
__global__ void __launch_bounds__(kThreads) barriers(Result* results) {
  unsigned x = threadIdx.x;
  sync_cluster();
  std::int64_t begin = clock64();
  for (int i = 0; i < kTurns; ++i) sync_cluster();
  report(results, 0, clocks_since(begin));
  begin = clock64();
  for (int i = 0; i < kTurns; ++i) x = work(x);
  report(results, 1, clocks_since(begin));
  sync_cluster();
  begin = clock64();
  for (int i = 0; i < kTurns; ++i) {
    sync_cluster();
    x = work(x);
  }
  report(results, 2, clocks_since(begin));
  sync_cluster();
  begin = clock64();
  for (int i = 0; i < kTurns; ++i) {
    arrive_in_cluster();
    x = work(x);
    wait_for_cluster();
  }
  report(results, 3, clocks_since(begin));
  report_wrong(results, x == 0xdeadbeef);  // it is not, but ptxas leaves out work of which nobody takes the result
}

// ---- An exchange: both CTAs of a pair give each other `bytes` and read what they got, kTurns times, each turn after the other.

// Through distributed shared memory: remote stores, cluster.sync, reading at home. What came in one turn is read while the next turn's
// comes into the other half of the memory, and one barrier a turn is enough: who writes a half again has passed the barrier behind its
// reading.
__global__ void __launch_bounds__(kThreads) exchange_pushed(Result* results, unsigned bytes) {
  extern __shared__ __align__(128) unsigned halves[];
  const unsigned rank = rank_in_cluster(), partner = rank ^ 1, own = clusters::shared_address(halves), there = in_cta(own, partner);
  unsigned sum = 0, wanted = 0;
  sync_cluster();
  const std::int64_t begin = clock64();
  for (unsigned turn = 0; turn < kTurns; ++turn) {
    const unsigned half = turn % 2 * kBufferBytes;
    for (unsigned at = 16 * threadIdx.x; at < bytes; at += 16 * kThreads) {
      const unsigned word = pattern(rank, at) + turn;
      store_in_cluster(there + half + at, {word, word, word, word});
    }
    sync_cluster();
    for (unsigned at = 16 * threadIdx.x; at < bytes; at += 16 * kThreads) sum += load_own(own + half + at).y;
  }
  __syncthreads();
  report(results, 0, clocks_since(begin));
  for (unsigned turn = 0; turn < kTurns; ++turn)
    for (unsigned at = 16 * threadIdx.x; at < bytes; at += 16 * kThreads) wanted += pattern(partner, at) + turn;
  report_wrong(results, sum != wanted);
  sync_cluster();
}

// Through L2: stores to global memory, a flag, a look at the partner's flag, loads. Two places in turn, as above: the partner's flag of the
// next turn says that it has read this one's. The pair is one cluster only so that both run at the same time.
__global__ void __launch_bounds__(kThreads) exchange_through_l2(Result* results, unsigned bytes, uint4* places, unsigned* flags) {
  const unsigned rank = rank_in_cluster(), partner = blockIdx.x ^ 1;
  uint4* const mine = places + std::size_t{blockIdx.x} * (2 * kBufferBytes / 16);
  const uint4* const others = places + std::size_t{partner} * (2 * kBufferBytes / 16);
  unsigned* const my_flag = flags + blockIdx.x * 32;  // each in a line of its own
  const unsigned* const other_flag = flags + partner * 32;
  unsigned sum = 0, wanted = 0;
  sync_cluster();
  const std::int64_t begin = clock64();
  for (unsigned turn = 0; turn < kTurns; ++turn) {
    const unsigned half = turn % 2 * (kBufferBytes / 16);
    for (unsigned i = threadIdx.x; i < bytes / 16; i += kThreads) {
      const unsigned word = pattern(rank, 16 * i) + turn;
      __stcg(mine + half + i, make_uint4(word, word, word, word));
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      asm volatile("fence.acq_rel.gpu;\n\tst.relaxed.gpu.global.u32 [%0], %1;" ::"l"(my_flag), "r"(turn + 1) : "memory");
      unsigned seen = 0;
      while (seen < turn + 1) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(other_flag) : "memory");
    }
    __syncthreads();
    for (unsigned i = threadIdx.x; i < bytes / 16; i += kThreads) sum += __ldcg(others + half + i).y;
  }
  __syncthreads();
  report(results, 0, clocks_since(begin));
  for (unsigned turn = 0; turn < kTurns; ++turn)
    for (unsigned i = threadIdx.x; i < bytes / 16; i += kThreads) wanted += pattern(rank ^ 1, 16 * i) + turn;
  report_wrong(results, sum != wanted);
}

// ---- The host's part.

class Bench {
 public:
  explicit Bench(int sms) : sms_(sms) {
    check(cudaMalloc(&results_, static_cast<std::size_t>(sms) * sizeof(Result)), "memory for results");
  }

  bool all_right() const { return all_right_; }

  // Median clocks over CTAs, of the second run: the first loads the kernel's code. All 0: the GPU holds no such cluster.
  template <class... Parameters, class... Arguments>
  Result run(const char* name, void (*kernel)(Result*, Parameters...), int cluster, int threads, int shared_bytes, Arguments... arguments) {
    clusters::ClusterLaunch launch(
        {.kernel = reinterpret_cast<const void*>(kernel), .cluster = cluster, .threads = threads, .shared_bytes = shared_bytes});
    launch.limit(sms_ / cluster * cluster);
    Result all{};
    if (launch.ctas() == 0) return all;
    std::vector<Result> results(static_cast<std::size_t>(launch.ctas()));
    for (int round = 0; round < 2; ++round) {
      before_run();
      check(cudaMemset(results_, 0, results.size() * sizeof(Result)), "clearing results");
      launch.run(kernel, results_, arguments...);
      check(cudaMemcpy(results.data(), results_, results.size() * sizeof(Result), cudaMemcpyDeviceToHost), name);
      for (const Result& r : results) all.wrong += r.wrong;
    }
    for (int which = 0; which < 4; ++which) {
      std::vector<unsigned> clocks;
      for (const Result& r : results) clocks.push_back(r.clocks[which]);
      std::nth_element(clocks.begin(), clocks.begin() + static_cast<std::ptrdiff_t>(clocks.size() / 2), clocks.end());
      all.clocks[which] = clocks[clocks.size() / 2];
    }
    if (all.wrong != 0) std::printf("%s_%d WRONG\n", name, cluster);
    all_right_ = all_right_ && all.wrong == 0;
    return all;
  }

  // To be set to 0 before each run.
  void clear_before_run(unsigned* flags, std::size_t bytes) { flags_ = flags, flags_bytes_ = bytes; }

 private:
  void before_run() {
    if (flags_ != nullptr) check(cudaMemset(flags_, 0, flags_bytes_), "clearing flags");
  }

  int sms_;
  Result* results_ = nullptr;
  unsigned* flags_ = nullptr;
  std::size_t flags_bytes_ = 0;
  bool all_right_ = true;
};

void print(const std::string& name, int cluster, double value, const char* unit) {
  if (value > 0) std::printf("%s_%d %.2f %s\n", name.c_str(), cluster, value, unit);
}

void print_rate(const char* name, int cluster, double amount, unsigned clocks, const char* unit) {
  if (clocks > 0) print(name, cluster, amount / clocks, unit);
}

void streams(Bench& bench, int cluster) {
  constexpr double kBytes = static_cast<double>(kPasses) * kBufferBytes;
  constexpr int kShared = static_cast<int>(kBufferBytes), kThreadCount = static_cast<int>(kThreads);
  const auto rate = [&](const char* name, void (*kernel)(Result*), int shared) {
    print_rate(name, cluster, kBytes, bench.run(name, kernel, cluster, kThreadCount, shared).clocks[0], "B/clk/SM");
  };
  rate("pull", pull, kShared);
  rate("push_stores", push<Push::stores>, kShared);
  rate("push_st_async", push<Push::st_async>, kShared);
  rate("push_bulk", push<Push::bulk>, 2 * kShared);
}

void adding(Bench& bench, int cluster) {
  constexpr double kAll = static_cast<double>(kThreads) * kAdditions;
  const auto rate = [&](const char* name, void (*kernel)(Result*)) {
    const Result r = bench.run(name, kernel, cluster, static_cast<int>(kThreads), static_cast<int>(kBufferBytes));
    print_rate(name, cluster, kAll, r.clocks[0], "additions/clk/SM");
  };
  rate("add_own", additions<Add::own>);
  rate("add_next", additions<Add::next>);
  rate("add_all", additions<Add::all>);
}

void waiting(Bench& bench, int cluster) {
  const Result loads = bench.run("follow", follow, cluster, 32, 0);
  print("load_own", cluster, loads.clocks[1] / static_cast<double>(kTurns), "clk");
  print("load_next", cluster, loads.clocks[0] / static_cast<double>(kTurns), "clk");
  const Result r = bench.run("barriers", barriers, cluster, static_cast<int>(kThreads), 0);
  const char* names[] = {"sync", "work", "sync_then_work", "arrive_work_wait"};
  for (int i = 0; i < 4; ++i) print(names[i], cluster, r.clocks[i] / static_cast<double>(kTurns), "clk");
}

void exchanging(Bench& bench, uint4* places, unsigned* flags) {
  for (const unsigned bytes : {1024u, 8192u, kBufferBytes}) {
    const std::string size = std::to_string(bytes);
    const auto show = [&](const std::string& name, int cluster, const Result& r) {
      print(name + "_" + size, cluster, r.clocks[0] / static_cast<double>(kTurns), "clk");
    };
    for (const int cluster : {2, 4, 8, 16})
      show("exchange_pushed", cluster,
           bench.run("exchange_pushed", exchange_pushed, cluster, static_cast<int>(kThreads), 2 * static_cast<int>(kBufferBytes), bytes));
    show("exchange_l2", 2,
         bench.run("exchange_l2", exchange_through_l2, 2, static_cast<int>(kThreads), 2 * static_cast<int>(kBufferBytes), bytes, places,
                   flags));
  }
}

}  // namespace

int main() {
  const cudaDeviceProp device = clusters::hopper_or_exit("cluster_memory");
  const int sms = device.multiProcessorCount;
  std::printf("# %s, %d SMs; name_CLUSTER value unit\n", device.name, sms);
  Bench bench(sms);
  uint4* places = nullptr;
  unsigned* flags = nullptr;
  const std::size_t flags_bytes = static_cast<std::size_t>(sms) * 128;
  check(cudaMalloc(&places, static_cast<std::size_t>(sms) * 2 * kBufferBytes), "memory for the exchange");
  check(cudaMalloc(&flags, flags_bytes), "memory for flags");
  bench.clear_before_run(flags, flags_bytes);
  for (const int cluster : {2, 4, 8, 16}) {
    streams(bench, cluster);
    adding(bench, cluster);
    waiting(bench, cluster);
  }
  exchanging(bench, places, flags);
  check(cudaFree(places), "freeing");
  check(cudaFree(flags), "freeing");
  return bench.all_right() ? 0 : 1;
}
