// A build with CUDA: device memory, copies and timing through the CUDA runtime.
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>

#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include "bench/trace_measurement.hpp"
#include "gpu.hpp"

namespace sluice::cli {
namespace {

constexpr double kTimedMicroseconds = 200'000;  // launches behind one another for about this long
constexpr int kMostLaunches = 50;

Status check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return Nothing{};
  return Error{ErrorCode::cuda, fmt::format("{}: {} ({})", what, cudaGetErrorString(code), cudaGetErrorName(code))};
}

struct FreeOnGpu {
  void operator()(void* memory) const { cudaFree(memory); }
};
using GpuMemory = std::unique_ptr<void, FreeOnGpu>;

struct DestroyStream {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
};
struct DestroyEvent {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
using StreamOwner = std::unique_ptr<CUstream_st, DestroyStream>;
using EventOwner = std::unique_ptr<CUevent_st, DestroyEvent>;

Result<GpuMemory> allocate(std::size_t bytes) {
  if (bytes == 0) return GpuMemory{};
  void* memory = nullptr;
  if (Status s = check(cudaMalloc(&memory, bytes), "allocating GPU memory"); !s)
    return Error{s.error().code, fmt::format("{}: {} bytes asked for", s.error().message, bytes)};
  return GpuMemory(memory);
}

Result<GpuMemory> copy_to_gpu(const void* host, std::size_t bytes) {
  Result<GpuMemory> memory = allocate(host == nullptr ? 0 : bytes);
  if (!memory || !*memory) return memory;
  if (Status s = check(cudaMemcpy(memory->get(), host, bytes, cudaMemcpyHostToDevice), "copying to the GPU"); !s) return s.error();
  return memory;
}

struct Timing {
  StreamOwner stream;
  EventOwner begin, end;
};

Result<Timing> make_timing() {
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
  if (Status s = check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "creating a stream"); !s) return s.error();
  Timing timing{.stream = StreamOwner(stream), .begin = {}, .end = {}};
  if (Status s = check(cudaEventCreate(&begin), "creating an event"); !s) return s.error();
  timing.begin.reset(begin);
  if (Status s = check(cudaEventCreate(&end), "creating an event"); !s) return s.error();
  timing.end.reset(end);
  return timing;
}

// Milliseconds that `launches` runs take.
Result<float> time_launches(const Plan& plan, const GemmArguments& arguments, void* workspace, const Timing& timing, int launches) {
  cudaStream_t stream = timing.stream.get();
  if (Status s = check(cudaEventRecord(timing.begin.get(), stream), "recording an event"); !s) return s.error();
  for (int i = 0; i < launches; ++i)
    if (Status s = run(plan, arguments, workspace, plan.workspace_bytes, stream); !s) return s.error();
  if (Status s = check(cudaEventRecord(timing.end.get(), stream), "recording an event"); !s) return s.error();
  if (Status s = check(cudaStreamSynchronize(stream), "running the kernel"); !s) return s.error();
  float milliseconds = 0;
  if (Status s = check(cudaEventElapsedTime(&milliseconds, timing.begin.get(), timing.end.get()), "reading the time"); !s) return s.error();
  return milliseconds;
}

}  // namespace

Result<int> gpu_count() {
  int count = 0;
  if (Status s = check(cudaGetDeviceCount(&count), "looking for GPUs"); !s) return s.error();
  return count;
}

Status select_gpu(int index) {
  const Result<int> count = gpu_count();
  if (!count) return count.error();
  if (index < 0 || index >= *count)
    return Error{ErrorCode::invalid_argument, fmt::format("GPU {} is not here; there are {}, numbered from 0", index, *count)};
  return check(cudaSetDevice(index), "selecting the GPU");
}

Result<GpuRun> run_on_gpu(const Plan& plan, const GemmArguments& host, const OperandBytes& bytes) {
  GpuMemory a, b, c, d, bias, scale_a, scale_b, scale_d, groups, workspace;
  struct Upload {
    GpuMemory& target;
    const void* host;
    std::size_t bytes;
  };
  for (const Upload& upload : {Upload{a, host.a, bytes.a},
                               {b, host.b, bytes.b},
                               {c, host.c, bytes.c},
                               {bias, host.bias, bytes.bias},
                               {scale_a, host.scale_a, bytes.scale_a},
                               {scale_b, host.scale_b, bytes.scale_b},
                               {scale_d, host.scale_d, bytes.scale_d},
                               {groups, host.groups, bytes.groups}}) {
    Result<GpuMemory> memory = copy_to_gpu(upload.host, upload.bytes);
    if (!memory) return memory.error();
    upload.target = std::move(*memory);
  }
  Result<GpuMemory> d_memory = allocate(bytes.d), workspace_memory = allocate(plan.workspace_bytes);
  if (!d_memory) return d_memory.error();
  if (!workspace_memory) return workspace_memory.error();
  d = std::move(*d_memory);
  workspace = std::move(*workspace_memory);
  if (Status s = prepare_workspace(workspace.get(), plan.workspace_bytes, nullptr); !s) return s.error();
  // All bits set is NaN in every output type: an element that no kernel writes shows.
  if (d)
    if (Status s = check(cudaMemset(d.get(), 0xff, bytes.d), "filling D"); !s) return s.error();
  if (Status s = check(cudaDeviceSynchronize(), "copying to the GPU"); !s) return s.error();

  const Result<Timing> timing = make_timing();
  if (!timing) return timing.error();
  const GemmArguments arguments{.a = a.get(),
                                .b = b.get(),
                                .c = c.get(),
                                .d = d.get(),
                                .bias = bias.get(),
                                .scale_a = static_cast<const float*>(scale_a.get()),
                                .scale_b = static_cast<const float*>(scale_b.get()),
                                .scale_d = static_cast<float*>(scale_d.get()),
                                .groups = static_cast<const std::int32_t*>(groups.get())};
  const Result<float> first_ms = time_launches(plan, arguments, workspace.get(), *timing, 1);  // loads the kernel
  if (!first_ms) return first_ms.error();
  const Result<float> second_ms = time_launches(plan, arguments, workspace.get(), *timing, 1);
  if (!second_ms) return second_ms.error();
  const double second_us = std::max(1.0, 1e3 * static_cast<double>(*second_ms));
  const int launches = std::clamp(static_cast<int>(kTimedMicroseconds / second_us), 1, kMostLaunches);
  const Result<float> total_ms = time_launches(plan, arguments, workspace.get(), *timing, launches);
  if (!total_ms) return total_ms.error();
  if (d)
    if (Status s = check(cudaMemcpy(host.d, d.get(), bytes.d, cudaMemcpyDeviceToHost), "copying D from the GPU"); !s) return s.error();
  if (bytes.finds_scales)
    if (Status s = check(cudaMemcpy(host.scale_d, scale_d.get(), bytes.scale_d, cudaMemcpyDeviceToHost), "copying scales from the GPU"); !s)
      return s.error();
  return GpuRun{.microseconds = 1e3 * static_cast<double>(*total_ms) / launches, .launches = launches};
}

Result<int> run_benchmark(const BenchOptions& options) {
  if (const Result<DeviceSpec> device = current_device(); !device) return device.error();
  return run_bench(options);
}

Status quantize_on_gpu(const QuantizeProblem& problem, const QuantizeArguments& host) {
  const Result<QuantizeProblem> valid = validate(problem);
  if (!valid) return valid.error();
  const QuantizeProblem& p = *valid;
  if (is_empty(p)) return Nothing{};
  const auto span = [&p](std::int64_t leading, DataType type) {
    return static_cast<std::size_t>((p.m - 1) * leading + p.k) * static_cast<std::size_t>(size_bytes(type));
  };
  const std::size_t q_bytes = span(p.ldq, p.type_q), scale_bytes = static_cast<std::size_t>(scale_elems(p)) * sizeof(float);
  const Result<GpuMemory> x = copy_to_gpu(host.x, span(p.ldx, p.type_x)), y = copy_to_gpu(host.y, span(p.ldy, p.type_x));
  const Result<GpuMemory> q = copy_to_gpu(host.q, q_bytes), scale = copy_to_gpu(host.scale, scale_bytes);
  for (const Result<GpuMemory>* memory : {&x, &y, &q, &scale})
    if (!*memory) return memory->error();
  const QuantizeArguments arguments{.x = x->get(), .y = y->get(), .q = q->get(), .scale = static_cast<float*>(scale->get())};
  if (Status s = quantize(p, arguments, nullptr); !s) return s;
  if (Status s = check(cudaMemcpy(host.q, q->get(), q_bytes, cudaMemcpyDeviceToHost), "copying q from the GPU"); !s) return s;
  return check(cudaMemcpy(host.scale, scale->get(), scale_bytes, cudaMemcpyDeviceToHost), "copying the scales from the GPU");
}

Status pack_w4_on_gpu(const PackW4Problem& p, const PackW4Arguments& host) {
  const auto size = [](std::int64_t elements) { return static_cast<std::size_t>(elements); };
  const std::int64_t scale_count = p.n * w4_groups(p.k, p.format);
  const std::size_t packed_bytes = size(packed_w4_bytes(p.n, p.k, p.format));
  const Result<GpuMemory> codes = copy_to_gpu(host.codes, size(p.n * p.k / 2)),
                          scales = copy_to_gpu(host.scales, size(scale_count * size_bytes(p.type_scales))),
                          zeros = copy_to_gpu(host.zeros, size(p.source == W4Source::plain ? scale_count : scale_count / 2)),
                          order = copy_to_gpu(host.order, size(p.k) * sizeof(std::int32_t)), packed = allocate(packed_bytes);
  for (const Result<GpuMemory>* memory : {&codes, &scales, &zeros, &order, &packed})
    if (!*memory) return memory->error();
  const PackW4Arguments arguments{.codes = codes->get(),
                                  .scales = scales->get(),
                                  .zeros = zeros->get(),
                                  .order = static_cast<const std::int32_t*>(order->get()),
                                  .packed = packed->get()};
  if (Status s = pack_w4(p, arguments, nullptr); !s) return s;
  return check(cudaMemcpy(host.packed, packed->get(), packed_bytes, cudaMemcpyDeviceToHost), "copying the packed weights from the GPU");
}

Status histogram_on_gpu(const HistogramProblem& problem, const HistogramArguments& host) {
  const Result<HistogramProblem> valid = validate(problem);
  if (!valid) return valid.error();
  const std::size_t count_bytes = static_cast<std::size_t>(valid->bins) * static_cast<std::size_t>(size_bytes(valid->count_type));
  const Result<GpuMemory> samples = copy_to_gpu(host.samples, static_cast<std::size_t>(sample_bytes(*valid)));
  if (!samples) return samples.error();
  const Result<GpuMemory> counts = copy_to_gpu(host.counts, count_bytes);
  if (!counts) return counts.error();
  if (Status s = histogram(*valid, {.samples = samples->get(), .counts = counts->get()}, nullptr); !s) return s;
  return check(cudaMemcpy(host.counts, counts->get(), count_bytes, cudaMemcpyDeviceToHost), "copying the counts from the GPU");
}

Status attention_on_gpu(const AttentionProblem& problem, const AttentionArguments& host, std::size_t kv_bytes) {
  const Result<DeviceSpec> device = current_device();
  if (!device) return device.error();
  const Result<AttentionPlan> plan = plan_attention(problem, *device);
  if (!plan) return plan.error();
  const AttentionProblem& p = plan->problem;
  const auto rows = static_cast<std::size_t>(p.batch * p.query_len * p.heads_q), batch = static_cast<std::size_t>(p.batch);
  const std::size_t o_bytes = rows * static_cast<std::size_t>(p.head_size * size_bytes(p.type)), lse_bytes = rows * sizeof(float);
  const std::size_t factors = static_cast<std::size_t>(p.heads_kv) * sizeof(float);
  const Result<GpuMemory> q = copy_to_gpu(host.q, o_bytes), k = copy_to_gpu(host.k, kv_bytes), v = copy_to_gpu(host.v, kv_bytes),
                          o = copy_to_gpu(host.o, o_bytes), lse = copy_to_gpu(host.lse, lse_bytes),
                          lengths = copy_to_gpu(host.lengths, batch * 4),
                          table = copy_to_gpu(host.block_table, batch * static_cast<std::size_t>(host.block_table_stride) * 4),
                          k_scales = copy_to_gpu(host.k_scales, factors), v_scales = copy_to_gpu(host.v_scales, factors),
                          workspace = allocate(plan->workspace_bytes);
  for (const Result<GpuMemory>* memory : {&q, &k, &v, &o, &lse, &lengths, &table, &k_scales, &v_scales, &workspace})
    if (!*memory) return memory->error();
  if (Status s = prepare_attention_workspace(workspace->get(), plan->workspace_bytes, nullptr); !s) return s;
  const AttentionArguments arguments{.q = q->get(),
                                     .k = k->get(),
                                     .v = v->get(),
                                     .o = o->get(),
                                     .lse = static_cast<float*>(lse->get()),
                                     .lengths = static_cast<const std::int32_t*>(lengths->get()),
                                     .block_table = static_cast<const std::int32_t*>(table->get()),
                                     .block_table_stride = host.block_table_stride,
                                     .k_scales = static_cast<const float*>(k_scales->get()),
                                     .v_scales = static_cast<const float*>(v_scales->get())};
  if (Status s = attention(*plan, arguments, workspace->get(), plan->workspace_bytes, nullptr); !s) return s;
  if (Status s = check(cudaMemcpy(host.o, o->get(), o_bytes, cudaMemcpyDeviceToHost), "copying O from the GPU"); !s) return s;
  return check(cudaMemcpy(host.lse, lse->get(), lse_bytes, cudaMemcpyDeviceToHost), "copying the logarithms from the GPU");
}

Result<bench::TraceRun> trace_on_gpu(const Plan& plan) { return bench::measure_trace(plan); }

Result<int> run_operation_benchmark(BenchedOperation operation, const OperationBenchOptions& options) {
  if (const Result<DeviceSpec> device = current_device(); !device) return device.error();
  return run_operation_bench(operation, options);
}

Result<int> run_calibrate(const CalibrationOptions& options) {
  if (const Result<DeviceSpec> device = current_device(); !device) return device.error();
  return run_calibration(options);
}

}  // namespace sluice::cli
