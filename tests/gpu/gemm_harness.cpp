#include "gemm_harness.hpp"

#include <algorithm>

#include "bench/device_random.hpp"

namespace sluice::gpu_tests {
namespace {

using bench::DeviceFailure;
using bench::Distribution;
using bench::Extent;

constexpr std::size_t kBufferBytes = std::size_t{192} << 20;
constexpr std::size_t kGuardBytes = std::size_t{64} << 10;

Distribution distribution_of(const GemmCase& c) {
  return c.exactness == bench::Exactness::exact ? Distribution::small_integers : Distribution::normal;
}

// A stride of 0 repeats one matrix: it is filled once.
Extent extent(std::int64_t vectors, std::int64_t length, std::int64_t leading, std::int64_t batch, std::int64_t stride) {
  return {.vectors = vectors,
          .length = length,
          .pitch = leading,
          .batch = stride == 0 ? std::min<std::int64_t>(batch, 1) : batch,
          .batch_stride = stride};
}

Extent extent_a(const GemmProblem& p) {
  const bool rows = p.layout_a == Layout::row_major;
  return extent(rows ? p.m : p.k, rows ? p.k : p.m, p.lda, p.batch, p.batch_stride_a);
}
Extent extent_b(const GemmProblem& p) {
  const bool rows = p.layout_b == Layout::row_major;
  return extent(rows ? p.k : p.n, rows ? p.n : p.k, p.ldb, p.batch, p.batch_stride_b);
}

}  // namespace

Settings& settings() {
  static Settings all;
  return all;
}

GemmHarness::GemmHarness() : check_(stream_), workspace_(settings().small ? kBufferBytes / 16 : kBufferBytes) {
  if (const Status s = prepare_workspace(workspace_.data(), workspace_.size_bytes(), stream_); !s)
    throw bench::DeviceFailure(s.error().message);
  if (settings().small) return;
  for (Memory* memory : {&a_, &b_, &c_, &d_, &bias_})
    memory->buffer = bench::DeviceBuffer(memory == &bias_ ? kBufferBytes / 64 : kBufferBytes);
}

void GemmHarness::place_memory(Memory& memory, std::int64_t span_elems, int offset_elems, int element_bytes, const char* name) {
  const std::size_t guard = settings().small ? 0 : kGuardBytes;
  const std::size_t offset = static_cast<std::size_t>(offset_elems * element_bytes);
  memory.region_bytes = 2 * guard + offset + static_cast<std::size_t>(span_elems * element_bytes);
  if (settings().small) memory.buffer = bench::DeviceBuffer(std::max<std::size_t>(memory.region_bytes, 1));
  if (memory.region_bytes > memory.buffer.size_bytes())
    throw DeviceFailure(std::string("the case needs ") + std::to_string(memory.region_bytes) + " bytes for " + name + ", the tests have " +
                        std::to_string(memory.buffer.size_bytes()));
  memory.region = memory.buffer.data();
  memory.first = memory.region + guard + offset;
  bench::check(cudaMemsetAsync(memory.region, bench::kPoisonByte, memory.region_bytes, stream_), std::string("poisoning ") + name);
}

PlacedCase GemmHarness::place(const KernelConfig& kernel, const GemmCase& c) {
  PlanOptions options = c.options;
  options.kernel_name = name(kernel);
  options.keep_candidates = false;
  Result<Plan> made = sluice::plan(problem_for(kernel, c), settings().device, options);
  if (!made) throw DeviceFailure("no plan: " + made.error().message);
  PlacedCase placed{.plan = std::move(*made)};
  const GemmProblem& p = placed.plan.problem;
  const int ab = size_bytes(p.type_a), d = size_bytes(p.type_d);
  const Distribution distribution = distribution_of(c);

  if (!c.null_inputs) {
    place_memory(a_, span_a(p), c.offset_a_elems, ab, "A");
    place_memory(b_, span_b(p), c.offset_b_elems, ab, "B");
    bench::fill_random(a_.first, p.type_a, extent_a(p), distribution, 1, stream_);
    bench::fill_random(b_.first, p.type_b, extent_b(p), distribution, 2, stream_);
    placed.arguments.a = a_.first;
    placed.arguments.b = b_.first;
  }
  place_memory(d_, span_d(p), c.offset_d_elems, d, "D");
  placed.arguments.d = d_.first;
  placed.d_region = d_.region;
  placed.d_region_bytes = d_.region_bytes;
  if (p.epilogue.bias != Bias::none) {
    const std::int64_t length = p.epilogue.bias == Bias::per_row ? p.m : p.n;
    place_memory(bias_, length, c.offset_d_elems, d, "the bias");
    bench::fill_random(bias_.first, p.type_d, {.vectors = 1, .length = length, .pitch = length}, distribution, 3, stream_);
    placed.arguments.bias = bias_.first;
  }
  const bool reads_c = p.epilogue.beta != 0;
  if (reads_c || c.c == CPlace::poison) {
    place_memory(c_, span_c(p), c.offset_d_elems, d, "C");
    if (reads_c) fill_c(placed, c_.first, c);
    placed.c_before = c_.first;
    placed.arguments.c = c.c == CPlace::is_d ? d_.first : c_.first;
  }
  return placed;
}

void GemmHarness::fill_c(const PlacedCase& placed, void* memory, const GemmCase& c) {
  const GemmProblem& p = placed.plan.problem;
  bench::fill_random(memory, p.type_d, extent(p.m, p.n, p.ldc, p.batch, p.batch_stride_c), distribution_of(c), 4, stream_);
}

void GemmHarness::poison_output(const PlacedCase& placed) {
  bench::check(cudaMemsetAsync(placed.d_region, bench::kPoisonByte, placed.d_region_bytes, stream_), "poisoning D");
}

void GemmHarness::run(const PlacedCase& placed) {
  const Status status = sluice::run(placed.plan, placed.arguments, workspace_.data(), workspace_.size_bytes(), stream_);
  if (!status) throw DeviceFailure("run: " + status.error().message);
}

void GemmHarness::run_and_check(const PlacedCase& placed, const GemmCase& c) {
  poison_output(placed);
  if (placed.arguments.c == placed.arguments.d && placed.c_before != nullptr) fill_c(placed, placed.arguments.d, c);
  run(placed);
  check_.against_reference(placed.plan.problem, placed.arguments, placed.c_before, c.exactness);
  check_.outside_untouched(placed.plan.problem, placed.arguments.d, placed.d_region, placed.d_region_bytes);
}

std::string GemmHarness::try_case(const KernelConfig& kernel, const GemmCase& c) {
  try {
    const PlacedCase placed = place(kernel, c);
    check_.reset();
    run_and_check(placed, c);
    const bench::CheckReport report = check_.fetch();
    worst_ratio_ = std::max(worst_ratio_, static_cast<double>(report.worst_ratio));
    return report.ok() ? "" : describe_failure(c, placed.plan, report);
  } catch (const DeviceFailure& failure) {
    return c.what + ", " + describe(problem_for(kernel, c)) + ": " + failure.what();
  }
}

std::string describe_failure(const GemmCase& c, const Plan& plan, const bench::CheckReport& report) {
  const GemmProblem& p = plan.problem;
  std::string text = c.what + ", " + describe(p) + ", ld " + std::to_string(p.lda) + " " + std::to_string(p.ldb) + " " +
                     std::to_string(p.ldc) + " " + std::to_string(p.ldd) + ", alpha " + std::to_string(p.epilogue.alpha) + ", beta " +
                     std::to_string(p.epilogue.beta) + ", grid " + std::to_string(plan.grid_ctas) + ", " + to_string(plan.scheduler.kind) +
                     ", " + to_string(plan.scheduler.raster) + "\n  " + bench::describe_counts(report);
  for (int i = 0; i < std::min(report.listed, bench::kWrongListed); ++i) {
    const bench::WrongElement& e = report.first[i];
    text += "\n  D[" + std::to_string(e.batch) + "][" + std::to_string(e.row) + ", " + std::to_string(e.column) + "]: tile (" +
            std::to_string(e.row / plan.kernel.tile_m) + ", " + std::to_string(e.column / plan.kernel.tile_n) + "), in it (" +
            std::to_string(e.row % plan.kernel.tile_m) + ", " + std::to_string(e.column % plan.kernel.tile_n) + "): got " +
            std::to_string(e.got) + ", expected " + std::to_string(e.expected) + " +- " + std::to_string(e.bound);
  }
  return text;
}

}  // namespace sluice::gpu_tests
