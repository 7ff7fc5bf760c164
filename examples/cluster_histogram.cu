// cluster_histogram [SAMPLES [BINS]]
//
// The classic cluster histogram: the bins are spread over the shared memory of a cluster's CTAs, and every thread adds each of its samples
// where the bin lies, mostly in another CTA. So a cluster holds more bins than a CTA could. Samples outside of the bins count in the first
// or last one. Each way is compared with the host's counts bin by bin, then timed, and sluice::histogram() is timed beside them.
// docs/clusters.md says what came of it.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "clusters.cuh"
#include "sluice/histogram.hpp"

namespace {

using clusters::check;

constexpr int kThreads = 1024;
constexpr int kVectors = 4;          // of 16 bytes, which a thread fetches at once: 64 KB for each CTA on their way
constexpr int kNotThere = -1;        // in place of a vector's first bin, behind the last vector
constexpr int kMostShared = 232448;  // bytes, of one CTA

// How a CTA waits until all CTAs of its cluster have cleared their bins.
enum class Start {
  sync,   // clear, cluster.sync, fetch the first samples
  early,  // fetch the first samples, clear, cluster.sync: no split, but the samples are on their way before it
  split,  // clear, arrive, fetch the first samples and turn them into bins, wait
};

struct Samples {
  const int4* vectors;
  std::int64_t vector_count;
  const int* tail;  // what fills no vector
  int tail_count;
};

struct Batch {
  int4 at[kVectors];
};

__device__ Batch fetch(const Samples& samples, std::int64_t first, std::int64_t step) {
  Batch batch;
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    const std::int64_t vector = first + i * step;
    batch.at[i] = vector < samples.vector_count ? __ldcs(samples.vectors + vector) : make_int4(0, 0, 0, 0);
  }
  return batch;
}

__device__ int bin_of(int sample, int bins) { return min(max(sample, 0), bins - 1); }

__device__ void make_bins(Batch& batch, const Samples& samples, std::int64_t first, std::int64_t step, int bins) {
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    int4& v = batch.at[i];
    v = make_int4(bin_of(v.x, bins), bin_of(v.y, bins), bin_of(v.z, bins), bin_of(v.w, bins));
    if (first + i * step >= samples.vector_count) v.x = kNotThere;
  }
}

// The low bits of a bin say which CTA has it: neighbouring bins, of which skewed samples often ask together, load all CTAs alike.
template <bool alone>
__device__ void add(int bin, unsigned own, unsigned shift) {
  if (alone) {
    clusters::increment_own(own + 4 * bin);
    return;
  }
  const unsigned owner = bin & ((1u << shift) - 1), word = static_cast<unsigned>(bin) >> shift;
  clusters::increment_in_cluster(clusters::in_cta(own + 4 * word, owner));
}

template <bool alone>
__device__ void add(const Batch& batch, unsigned own, unsigned shift) {
#pragma unroll
  for (int i = 0; i < kVectors; ++i) {
    if (batch.at[i].x == kNotThere) continue;
    add<alone>(batch.at[i].x, own, shift);
    add<alone>(batch.at[i].y, own, shift);
    add<alone>(batch.at[i].z, own, shift);
    add<alone>(batch.at[i].w, own, shift);
  }
}

// 2^shift CTAs a cluster; `alone`: one, whose additions stay at home and whose barrier is the CTA's own. `first_clocks`, if not null, has
// for each CTA the clocks that passed until its first thread had added its first samples.
template <bool alone, Start start>
__global__ void __launch_bounds__(kThreads) count(Samples samples, int bins, unsigned shift, unsigned* counts, unsigned* first_clocks) {
  extern __shared__ __align__(16) unsigned own_bins[];
  const std::int64_t begin = clock64();
  const unsigned rank = alone ? 0 : clusters::rank_in_cluster(), own = clusters::shared_address(own_bins);
  const int own_count = static_cast<int>((bins - rank + (1u << shift) - 1) >> shift);
  const std::int64_t step = std::int64_t{kThreads} * gridDim.x, batch_step = step * kVectors;
  std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;

  Batch batch;
  if (start == Start::early) batch = fetch(samples, at, step);
  for (int i = static_cast<int>(threadIdx.x); i < own_count; i += kThreads) own_bins[i] = 0;
  // No CTA may add to another's bins before that one has begun and cleared them.
  if (alone)
    __syncthreads();
  else
    clusters::arrive_in_cluster();
  if (start == Start::split) {
    batch = fetch(samples, at, step);
    make_bins(batch, samples, at, step, bins);
  }
  if (!alone) clusters::wait_for_cluster();
  if (start == Start::sync) batch = fetch(samples, at, step);
  if (start != Start::split) make_bins(batch, samples, at, step, bins);

  // The next samples come while these are counted.
  for (bool first = true; at < samples.vector_count; at += batch_step, first = false) {
    Batch next = fetch(samples, at + batch_step, step);
    add<alone>(batch, own, shift);
    if (first && first_clocks != nullptr && threadIdx.x == 0) first_clocks[blockIdx.x] = static_cast<unsigned>(clock64() - begin);
    make_bins(next, samples, at + batch_step, step, bins);
    batch = next;
  }
  if (blockIdx.x == 0 && static_cast<int>(threadIdx.x) < samples.tail_count)
    add<alone>(bin_of(samples.tail[threadIdx.x], bins), own, shift);

  // The others may still be adding here, and nobody may leave whose shared memory is added to. There is nothing to do between arrive and
  // wait: all that is left needs the final counts. Behind this barrier each CTA reads its own bins alone, so that none is needed at the
  // end.
  if (alone)
    __syncthreads();
  else
    clusters::sync_cluster();
  for (int i = static_cast<int>(threadIdx.x); i < own_count; i += kThreads)
    if (own_bins[i] != 0) atomicAdd(counts + (static_cast<unsigned>(i) << shift | rank), own_bins[i]);
}

using Kernel = decltype(&count<true, Start::sync>);
constexpr Start kStarts[] = {Start::sync, Start::early, Start::split};

Kernel kernel_of(bool alone, Start start) {
  if (start == Start::sync) return alone ? count<true, Start::sync> : count<false, Start::sync>;
  if (start == Start::early) return alone ? count<true, Start::early> : count<false, Start::early>;
  return alone ? count<true, Start::split> : count<false, Start::split>;
}

// Numbers that look like chance; a 16th of them lies outside of the bins, half of that on each side.
std::vector<int> make_samples(std::int64_t n, int bins) {
  std::vector<int> samples(static_cast<std::size_t>(n));
  const std::uint64_t range = static_cast<std::uint64_t>(bins) + 2 * (static_cast<std::uint64_t>(bins) / 32);
  std::uint64_t state = 1;
  for (int& sample : samples) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    sample = static_cast<int>((state >> 32) * range >> 32) - bins / 32;
  }
  return samples;
}

std::vector<unsigned> count_on_host(const std::vector<int>& samples, std::int64_t n, int bins) {
  std::vector<unsigned> counts(static_cast<std::size_t>(bins));
  for (std::int64_t i = 0; i < n; ++i)
    ++counts[static_cast<std::size_t>(std::min(std::max(samples[static_cast<std::size_t>(i)], 0), bins - 1))];
  return counts;
}

template <class T>
T median(std::vector<T> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Microseconds of one call among several that follow one another in a graph: the median of five rounds, after one that does not count.
template <class Call>
double time_us(cudaStream_t stream, int calls, Call call) {
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capturing");
  for (int i = 0; i < calls; ++i) call();
  check(cudaStreamEndCapture(stream, &graph), "capturing");
  check(cudaGraphInstantiate(&executable, graph, 0), "making a graph");
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "timing");
  check(cudaEventCreate(&end), "timing");
  std::vector<float> rounds;
  for (int round = 0; round < 6; ++round) {
    float ms = 0;
    check(cudaEventRecord(begin, stream), "timing");
    check(cudaGraphLaunch(executable, stream), "launching a graph");
    check(cudaEventRecord(end, stream), "timing");
    check(cudaEventSynchronize(end), "a kernel");
    check(cudaEventElapsedTime(&ms, begin, end), "timing");
    if (round > 0) rounds.push_back(ms);
  }
  check(cudaEventDestroy(begin), "timing");
  check(cudaEventDestroy(end), "timing");
  check(cudaGraphExecDestroy(executable), "freeing");
  check(cudaGraphDestroy(graph), "freeing");
  return median(rounds) * 1e3 / calls;
}

struct Bench {
  std::vector<int> host;
  int bins;
  int* samples = nullptr;
  unsigned *counts = nullptr, *clocks = nullptr;
  int sms;
  cudaStream_t stream = nullptr;
  bool all_right = true;
};

bool right(const Bench& b, const std::vector<unsigned>& wanted) {
  std::vector<unsigned> got(wanted.size());
  check(cudaMemcpy(got.data(), b.counts, got.size() * sizeof(unsigned), cudaMemcpyDeviceToHost), "fetching counts");
  return got == wanted;
}

void table_row(Bench& b, const Samples& samples, int cluster, int calls, const std::vector<unsigned>& wanted) {
  unsigned shift = 0;
  while (1 << shift < cluster) ++shift;
  const int shared = (b.bins + cluster - 1) / cluster * static_cast<int>(sizeof(unsigned));
  if (shared > kMostShared) {
    std::printf("%7d        the bins do not fit\n", cluster);
    return;
  }
  double us[3] = {};
  unsigned first[3] = {};
  int ctas = 0;
  bool exact = true;
  for (int i = 0; i < 3; ++i) {
    const Kernel kernel = kernel_of(cluster == 1, kStarts[i]);
    clusters::ClusterLaunch launch({.kernel = reinterpret_cast<const void*>(kernel),
                                    .cluster = cluster,
                                    .threads = kThreads,
                                    .shared_bytes = shared,
                                    .stream = b.stream});
    launch.limit(b.sms / cluster * cluster);  // one CTA an SM, like the library; more only wait for the same memory
    ctas = launch.ctas();
    if (ctas == 0) {
      std::printf("%7d        this GPU holds no such cluster\n", cluster);
      return;
    }
    const auto run = [&](unsigned* clocks) {
      check(cudaMemsetAsync(b.counts, 0, static_cast<std::size_t>(b.bins) * sizeof(unsigned), b.stream), "clearing counts");
      launch.run(kernel, samples, b.bins, shift, b.counts, clocks);
    };
    check(cudaMemset(b.clocks, 0, static_cast<std::size_t>(b.sms) * sizeof(unsigned)), "clearing clocks");
    run(b.clocks);
    std::vector<unsigned> clocks(static_cast<std::size_t>(ctas));
    check(cudaMemcpy(clocks.data(), b.clocks, clocks.size() * sizeof(unsigned), cudaMemcpyDeviceToHost), "fetching clocks");
    exact = exact && right(b, wanted);
    run(b.clocks);  // again: the first launch of a kernel also loads its code
    check(cudaMemcpy(clocks.data(), b.clocks, clocks.size() * sizeof(unsigned), cudaMemcpyDeviceToHost), "fetching clocks");
    first[i] = median(clocks);
    us[i] = time_us(b.stream, calls, [&] { run(nullptr); });
    exact = exact && right(b, wanted);
  }
  b.all_right = b.all_right && exact;
  std::printf("%7d %5d %10.1f %10.1f %10.1f %8.1f%% %8u %6u %6u  %s\n", cluster, ctas, us[0], us[1], us[2], 100 * (1 - us[2] / us[0]),
              first[0], first[1], first[2], exact ? "exact" : "WRONG");
}

void table(Bench& b, std::int64_t n) {
  const std::vector<unsigned> wanted = count_on_host(b.host, n, b.bins);
  const Samples samples{reinterpret_cast<const int4*>(b.samples), n / 4, b.samples + n / 4 * 4, static_cast<int>(n % 4)};
  const int calls = n > (1 << 24) ? 2 : 20;
  std::printf("\n%lld samples, %d bins: microseconds, and clocks until a CTA has added its first samples\n", static_cast<long long>(n),
              b.bins);
  std::printf("cluster  CTAs    sync us   early us   split us   split's gain  sync  early  split clk\n");
  for (const int cluster : {1, 2, 4, 8, 16}) table_row(b, samples, cluster, calls, wanted);

  const sluice::HistogramProblem problem{.n = n, .bins = b.bins, .outside = sluice::OutsideValues::clamped};
  const auto library = [&] {
    const sluice::Status status = sluice::histogram(problem, {.samples = b.samples, .counts = b.counts}, b.stream);
    if (status.ok()) return;
    std::fprintf(stderr, "sluice::histogram(): %s\n", status.error().message.c_str());
    std::exit(1);
  };
  const double us = time_us(b.stream, calls, library);
  const bool exact = right(b, wanted);
  b.all_right = b.all_right && exact;
  const sluice::Result<sluice::HistogramPlan> plan = sluice::plan_histogram(problem, *sluice::find_device("h200"));
  std::printf("sluice::histogram() %8.1f us  %s  %s\n", us, exact ? "exact" : "WRONG", plan ? sluice::describe(plan->way).c_str() : "");
}

bool bench(std::int64_t n, int bins, int sms) {
  Bench b{.host = make_samples(n, bins), .bins = bins, .sms = sms};
  check(cudaStreamCreate(&b.stream), "a stream");
  check(cudaMalloc(&b.samples, static_cast<std::size_t>(n) * sizeof(int) + 16), "memory for samples");
  check(cudaMalloc(&b.counts, static_cast<std::size_t>(bins) * sizeof(unsigned)), "memory for counts");
  check(cudaMalloc(&b.clocks, static_cast<std::size_t>(sms) * sizeof(unsigned)), "memory for clocks");
  check(cudaMemcpy(b.samples, b.host.data(), b.host.size() * sizeof(int), cudaMemcpyHostToDevice), "bringing samples");
  table(b, n);
  if (n >= 1 << 12) table(b, n / 64);  // few samples, which L2 holds: the start is a larger part of the whole
  check(cudaFree(b.samples), "freeing");
  check(cudaFree(b.counts), "freeing");
  check(cudaFree(b.clocks), "freeing");
  check(cudaStreamDestroy(b.stream), "freeing");
  return b.all_right;
}

// A whole number from `least` to `most`, or the end of the program.
std::int64_t number(const char* text, std::int64_t least, std::int64_t most, const char* what) {
  char* end = nullptr;
  const long long value = std::strtoll(text, &end, 10);
  if (end != text && *end == '\0' && value >= least && value <= most) return value;
  std::fprintf(stderr, "cluster_histogram: %s = '%s' is no whole number from %lld to %lld\nusage: cluster_histogram [SAMPLES [BINS]]\n",
               what, text, static_cast<long long>(least), static_cast<long long>(most));
  std::exit(2);
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t n = argc > 1 ? number(argv[1], 1, std::int64_t{1} << 30, "SAMPLES") : std::int64_t{1} << 26;
  const int bins = argc > 2 ? static_cast<int>(number(argv[2], 2, sluice::kMostBins, "BINS")) : 0;
  if (argc > 3) {
    std::fprintf(stderr, "usage: cluster_histogram [SAMPLES [BINS]]\n");
    return 2;
  }
  const cudaDeviceProp device = clusters::hopper_or_exit("cluster_histogram");
  std::printf("%s, %d SMs\n", device.name, device.multiProcessorCount);
  if (bins != 0) return bench(n, bins, device.multiProcessorCount) ? 0 : 1;
  // What one CTA holds, and what only a cluster does.
  bool right = bench(n, 16384, device.multiProcessorCount);
  right = bench(n, 65536, device.multiProcessorCount) && right;
  return right ? 0 : 1;
}
