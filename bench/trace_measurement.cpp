#include "bench/trace_measurement.hpp"

#include <algorithm>
#include <cstring>

#include "bench/device_memory.hpp"
#include "bench/device_random.hpp"
#include "bench/timing.hpp"
#include "sluice/run.hpp"
#include "sluice/trace.hpp"

namespace sluice::bench {
namespace {

constexpr double kSeconds = 0.3;  // of GPU time for the comparison
constexpr int kMostSets = 64;

std::size_t bytes_of(std::int64_t elems, DataType type) {
  constexpr std::size_t kAlignment = 256;
  const std::size_t bytes = static_cast<std::size_t>(elems) * static_cast<std::size_t>(size_bytes(type));
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// One operand, as many times as there are sets.
class Operand {
 public:
  Operand(std::int64_t elems, DataType type, int sets, Distribution distribution, std::uint64_t seed, cudaStream_t stream)
      : step_bytes_(bytes_of(elems, type)), memory_(step_bytes_ * static_cast<std::size_t>(sets)) {
    const std::int64_t all = static_cast<std::int64_t>(memory_.size_bytes()) / size_bytes(type);
    if (all > 0) fill_random(memory_.data(), type, {.vectors = 1, .length = all, .pitch = all}, distribution, seed, stream);
  }
  std::byte* of(int set) const {
    return memory_.size_bytes() == 0 ? nullptr : memory_.data() + step_bytes_ * static_cast<std::size_t>(set);
  }
  std::size_t step_bytes() const { return step_bytes_; }

 private:
  std::size_t step_bytes_;
  DeviceBuffer memory_;
};

int set_count(const Plan& plan, const OperandElems& elems) {
  const GemmProblem& p = plan.problem;
  const std::size_t bytes = bytes_of(elems.a, p.type_a) + bytes_of(elems.b, p.type_b) + bytes_of(elems.d, p.type_d) + 1;
  const std::size_t wanted = 3 * static_cast<std::size_t>(std::max<std::int64_t>(plan.device.l2_bytes, 1));
  return static_cast<int>(std::clamp<std::size_t>(wanted / bytes + 1, 1, kMostSets));
}

class TracedProduct {
 public:
  explicit TracedProduct(const Plan& plan)
      : plan_(plan),
        elems_(operand_elems(plan.problem)),
        sets_(set_count(plan, elems_)),
        a_(elems_.a, plan.problem.type_a, sets_, Distribution::normal, 1, stream_),
        b_(elems_.b, plan.problem.type_b, sets_, Distribution::normal, 2, stream_),
        c_(elems_.c, plan.problem.type_d, 1, Distribution::normal, 3, stream_),
        d_(elems_.d, plan.problem.type_d, sets_, Distribution::normal, 4, stream_),
        bias_(elems_.bias, bias_type(plan.problem.type_d), 1, Distribution::normal, 5, stream_),
        scale_a_(elems_.scale_a, DataType::fp32, 1, Distribution::positive, 6, stream_),
        scale_b_(elems_.scale_b, DataType::fp32, 1, Distribution::positive, 7, stream_),
        scale_d_(elems_.scale_d, DataType::fp32, 1, Distribution::positive, 8, stream_),
        workspace_(plan.workspace_bytes),
        trace_(trace_bytes(plan)),
        not_read_(trace_bytes(plan)) {
    require(prepare_workspace(workspace_.data(), plan.workspace_bytes, stream_));
    stream_.synchronize("making operands");  // constant ones may be fetched before the kernel ahead has ended
  }

  TraceRun measure() {
    TraceRun run;
    const std::vector<std::byte> plain_d = result_of([&] { plain(0, stream_); });
    run.same_bits = plain_d == result_of([&] { traced(0, trace_, stream_); });
    const auto [own, rival] = time_beside([this](int set, cudaStream_t stream) { plain(set, stream); },
                                          [this](int set, cudaStream_t stream) { traced(set, trace_, stream); }, sets_, kSeconds, stream_);
    run.plain_us = own.us;
    run.traced_us = rival.us;
    // The record is of a run that follows others closely: at the clock that they bring about, its start beside the end of the one ahead.
    // The last of these are traced as well: a kernel's first run in a while fetches its code from memory, and stores its first tiles 3 us
    // later.
    constexpr int kBefore = 20, kTracedBefore = 8;
    clear_trace();
    for (int i = 0; i < kBefore; ++i) i < kBefore - kTracedBefore ? plain(i % sets_, stream_) : traced(i % sets_, not_read_, stream_);
    traced(kBefore % sets_, trace_, stream_);
    stream_.synchronize("tracing");
    run.records.resize(trace_.size_bytes());
    check(cudaMemcpy(run.records.data(), trace_.data(), trace_.size_bytes(), cudaMemcpyDeviceToHost), "copying the trace");
    return run;
  }

 private:
  static void require(const Status& status) {
    if (!status) throw DeviceFailure(status.error().message);
  }
  GemmArguments arguments(int set) const {
    return {.a = a_.of(set),
            .b = b_.of(set),
            .c = c_.of(0),
            .d = d_.of(set),
            .bias = bias_.of(0),
            .scale_a = reinterpret_cast<const float*>(scale_a_.of(0)),
            .scale_b = reinterpret_cast<const float*>(scale_b_.of(0)),
            .scale_d = reinterpret_cast<float*>(scale_d_.of(0))};
  }
  void plain(int set, cudaStream_t stream) {
    require(sluice::run(plan_, arguments(set), workspace_.data(), plan_.workspace_bytes, stream));
  }
  void traced(int set, const DeviceBuffer& trace, cudaStream_t stream) {
    require(run_traced(plan_, arguments(set), workspace_.data(), plan_.workspace_bytes, {trace.data(), trace.size_bytes()}, stream));
  }
  void clear_trace() { check(cudaMemsetAsync(trace_.data(), 0, trace_.size_bytes(), stream_), "clearing the trace"); }

  template <class Run>
  std::vector<std::byte> result_of(const Run& run) {
    check(cudaMemsetAsync(d_.of(0), 0xff, d_.step_bytes(), stream_), "filling D");
    run();
    stream_.synchronize("running the kernel");
    std::vector<std::byte> d(static_cast<std::size_t>(elems_.d) * static_cast<std::size_t>(size_bytes(plan_.problem.type_d)));
    check(cudaMemcpy(d.data(), d_.of(0), d.size(), cudaMemcpyDeviceToHost), "copying D");
    return d;
  }

  const Plan& plan_;
  DeviceStream stream_;
  OperandElems elems_;
  int sets_;
  Operand a_, b_, c_, d_, bias_, scale_a_, scale_b_, scale_d_;
  DeviceBuffer workspace_, trace_, not_read_;
};

}  // namespace

Result<TraceRun> measure_trace(const Plan& plan) {
  try {
    return TracedProduct(plan).measure();
  } catch (const DeviceFailure& failure) {
    return Error{ErrorCode::cuda, failure.what()};
  }
}

}  // namespace sluice::bench
