#include "gemm_harness.hpp"

#include <algorithm>
#include <vector>

#include "bench/stream.hpp"
#include "packed_weights.hpp"

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

Extent scale_extent(const ScaleRuns& runs, std::int64_t batch, std::int64_t stride) {
  return extent(runs.runs, runs.length, runs.pitch, batch, stride);
}

}  // namespace

// Where the elements and the scales of A or B lie.
struct GemmHarness::OperandPlaces {
  const char* name;
  DataType type;
  Extent elements;
  std::int64_t span_elems;
  int offset_elems;
  Extent scales;
  std::int64_t scale_span_elems;
  int scale_offset_elems;
};

Settings& settings() {
  static Settings all;
  return all;
}

GemmHarness::GemmHarness() : check_(stream_), workspace_(settings().small ? kBufferBytes / 12 : kBufferBytes) {
  if (const Status s = prepare_workspace(workspace_.data(), workspace_.size_bytes(), stream_); !s)
    throw bench::DeviceFailure(s.error().message);
  if (settings().small) return;
  for (Memory* memory : {&a_.elements, &b_.elements, &dequantised_b_, &c_, &d_}) memory->buffer = bench::DeviceBuffer(kBufferBytes);
  for (Memory* memory : {&a_.scales, &b_.scales, &bias_, &groups_}) memory->buffer = bench::DeviceBuffer(kBufferBytes / 64);
}

void GemmHarness::place_memory(Memory& memory, std::int64_t span_elems, int offset_elems, int element_bytes, const std::string& name) {
  const std::size_t guard = settings().small ? 0 : kGuardBytes;
  const std::size_t offset = static_cast<std::size_t>(offset_elems * element_bytes);
  memory.region_bytes = 2 * guard + offset + static_cast<std::size_t>(span_elems * element_bytes);
  if (settings().small) memory.buffer = bench::DeviceBuffer(std::max<std::size_t>(memory.region_bytes, 1));
  if (memory.region_bytes > memory.buffer.size_bytes())
    throw DeviceFailure("the case needs " + std::to_string(memory.region_bytes) + " bytes for " + name + ", the tests have " +
                        std::to_string(memory.buffer.size_bytes()));
  memory.region = memory.buffer.data();
  memory.first = memory.region + guard + offset;
  bench::check(cudaMemsetAsync(memory.region, bench::kPoisonByte, memory.region_bytes, stream_), "poisoning " + name);
}

// What an operand is, numbers times scales, is of variance 1 or integer, whatever its type. Numbers of FP8 that have scales make use of all
// their range.
void GemmHarness::place_operand(Operand& operand, const OperandPlaces& places, Distribution distribution, std::uint64_t seed) {
  const bool scaled = places.scale_span_elems > 0, exact = distribution == Distribution::small_integers;
  const float spread = scaled && !exact ? bench::spread(places.type) : 1;
  place_memory(operand.elements, places.span_elems, places.offset_elems, size_bytes(places.type), places.name);
  bench::fill_random(operand.elements.first, places.type, places.elements, distribution, seed, stream_, spread);
  if (!scaled) return;
  place_memory(operand.scales, places.scale_span_elems, places.scale_offset_elems, sizeof(float),
               std::string("the scales of ") + places.name);
  bench::fill_random(operand.scales.first, DataType::fp32, places.scales, exact ? Distribution::powers_of_two : Distribution::positive,
                     seed + 10, stream_, 1 / spread);
}

PlacedCase GemmHarness::place(const KernelConfig& kernel, const GemmCase& c) {
  PlanOptions options = c.options;
  options.kernel_name = name(kernel);
  options.keep_candidates = false;
  Result<Plan> made = sluice::plan(problem_for(kernel, c), settings().device, options);
  if (!made) throw DeviceFailure("no plan: " + made.error().message);
  PlacedCase placed{.plan = std::move(*made)};
  const GemmProblem& p = placed.plan.problem;
  const int d = size_bytes(p.type_d);
  const Distribution distribution = distribution_of(c);

  if (!c.null_inputs) {
    const Extent scales_a = scale_extent(scale_runs_a(p), p.batch, p.batch_stride_scale_a);
    const Extent scales_b = scale_extent(scale_runs_b(p), p.batch, p.batch_stride_scale_b);
    place_operand(a_, {"A", p.type_a, extent_a(p), span_a(p), c.offset_a_elems, scales_a, scale_elems_a(p), c.offset_scale_elems},
                  distribution, 1);
    if (p.type_b == DataType::int4)
      place_packed(placed, c);
    else
      place_operand(b_, {"B", p.type_b, extent_b(p), span_b(p), c.offset_b_elems, scales_b, scale_elems_b(p), c.offset_scale_elems},
                    distribution, 2);
    placed.arguments.a = a_.elements.first;
    placed.arguments.b = b_.elements.first;
    if (p.scaling_a != Scaling::none) placed.arguments.scale_a = reinterpret_cast<const float*>(a_.scales.first);
    if (p.scaling_b != Scaling::none) placed.arguments.scale_b = reinterpret_cast<const float*>(b_.scales.first);
  }
  if (p.grouping != Grouping::none) place_groups(placed, c);
  place_memory(d_, span_d(p), c.offset_d_elems, d, "D");
  placed.arguments.d = d_.first;
  placed.d_region = d_.region;
  placed.d_region_bytes = d_.region_bytes;
  if (p.epilogue.bias != Bias::none) {
    const std::int64_t length = bias_elems(p);
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

// Packed weights, and the matrix that they stand for, which the result is judged by.
void GemmHarness::place_packed(PlacedCase& placed, const GemmCase& c) {
  const GemmProblem& p = placed.plan.problem;
  const std::vector<std::byte> packed = random_packed_weights(p, c.exactness == bench::Exactness::exact, 2);
  const std::vector<std::byte> weights = dequantised_weights(p, packed);
  place_memory(b_.elements, static_cast<std::int64_t>(packed.size()), 0, 1, "packed B");
  bench::check(cudaMemcpyAsync(b_.elements.first, packed.data(), packed.size(), cudaMemcpyHostToDevice, stream_), "placing packed B");
  place_memory(dequantised_b_, static_cast<std::int64_t>(weights.size()), 0, 1, "B");
  bench::check(cudaMemcpyAsync(dequantised_b_.first, weights.data(), weights.size(), cudaMemcpyHostToDevice, stream_), "placing B");
  bench::check(cudaStreamSynchronize(stream_), "placing B");
  placed.dequantised_b = dequantised_b_.first;
}

void GemmHarness::poison_vectors(std::byte* first, std::int64_t leading, std::int64_t length, std::int64_t vectors, int element_bytes) {
  if (vectors <= 0) return;
  const auto element = static_cast<std::size_t>(element_bytes);
  bench::check(cudaMemset2DAsync(first, static_cast<std::size_t>(leading) * element, bench::kPoisonByte,
                                 static_cast<std::size_t>(length) * element, static_cast<std::size_t>(vectors), stream_),
               "poisoning what is of no group");
}

// What is no group's, rows of A or K of both operands, is NaN again.
void GemmHarness::place_groups(PlacedCase& placed, const GemmCase& c) {
  const GemmProblem& p = placed.plan.problem;
  const auto bytes = c.groups.size() * sizeof(std::int32_t);
  place_memory(groups_, static_cast<std::int64_t>(c.groups.size()), 1, sizeof(std::int32_t), "the sizes of groups");
  bench::check(cudaMemcpyAsync(groups_.first, c.groups.data(), bytes, cudaMemcpyHostToDevice, stream_), "placing the sizes of groups");
  placed.arguments.groups = reinterpret_cast<const std::int32_t*>(groups_.first);
  const int element = size_bytes(p.type_a);
  const bool along_k = p.grouping == Grouping::along_k;
  if (c.null_inputs || (p.layout_a != Layout::row_major && !along_k)) return;
  const auto poison = [&](std::int64_t matrix, std::int64_t first, std::int64_t end) {
    if (along_k && p.layout_a == Layout::row_major) {  // elements of each row of A and column of B
      if (first >= end) return;
      poison_vectors(a_.elements.first + first * element, p.lda, end - first, p.m, element);
      return poison_vectors(b_.elements.first + first * element, p.ldb, end - first, p.n, element);
    }
    const std::int64_t at = matrix * p.batch_stride_a + first * p.lda;
    poison_vectors(a_.elements.first + at * element, p.lda, along_k ? p.m : p.k, end - first, element);
    if (along_k) poison_vectors(b_.elements.first + first * p.ldb * element, p.ldb, p.n, end - first, element);
  };
  std::int64_t end = 0;  // of the groups before
  for (std::int64_t group = 0; group < p.batch; ++group) {
    if (p.grouping == Grouping::masked) {
      if (p.batch_stride_a > 0) poison(group, rows_of(p, c.groups, group).count, p.m);
      continue;
    }
    const Rows own = along_k ? depth_of(p, c.groups, group) : rows_of(p, c.groups, group);
    poison(0, end, own.first);
    end = std::max(end, own.first + own.count);
  }
  if (p.grouping != Grouping::masked) poison(0, end, along_k ? p.k : p.m);
}

void GemmHarness::fill_c(const PlacedCase& placed, void* memory, const GemmCase& c) {
  const GemmProblem& p = placed.plan.problem;
  bench::fill_random(memory, p.type_d, extent(p.m, p.n, p.ldc, row_matrices(p), p.batch_stride_c), distribution_of(c), 4, stream_);
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
  if (!settings().small) bench::stream_through(c_.buffer.data(), c_.buffer.size_bytes(), stream_);
  run(placed);
  GemmProblem problem = placed.plan.problem;
  GemmArguments arguments = placed.arguments;
  if (problem.type_b == DataType::int4) {
    problem = dequantised(problem);
    arguments.b = placed.dequantised_b;
  }
  check_.against_reference(problem, arguments, placed.c_before, c.exactness);
  check_.outside_untouched(placed.plan.problem, placed.arguments.groups, placed.arguments.d, placed.d_region, placed.d_region_bytes);
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
                     std::to_string(p.ldc) + " " + std::to_string(p.ldd) + ", of scales (" + to_string(p.scale_layout_a) + ", " +
                     to_string(p.scale_layout_b) + ") " + std::to_string(p.ld_scale_a) + " " + std::to_string(p.ld_scale_b) + ", alpha " +
                     std::to_string(p.epilogue.alpha) + ", beta " + std::to_string(p.epilogue.beta) + ", grid " +
                     std::to_string(plan.grid_ctas) + ", " + to_string(plan.scheduler.kind) + ", " + to_string(plan.scheduler.raster) +
                     "\n  " + bench::describe_counts(report);
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
