#include "bench/grouped_measurement.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "bench/device_random.hpp"
#include "bench/random_w4.hpp"
#include "bench/sizing.hpp"
#include "bench/stream.hpp"
#include "bench/suites.hpp"
#include "bench/tuning.hpp"
#include "sluice/group_arguments.hpp"
#include "sluice/plan.hpp"
#include "sluice/w4.hpp"

namespace sluice::bench {
namespace {

constexpr std::int64_t kSamples = 4096;
constexpr std::size_t kMostInputBytes = std::size_t{12} << 30;

std::size_t product(std::int64_t x, std::int64_t y, std::int64_t z = 1) { return static_cast<std::size_t>(x * y * z); }

bool has_w4(const GroupedShape& shape) { return shape.type == DataType::int4; }

// Rows of A and D that there is memory for.
std::int64_t rows_in_memory(const GemmProblem& p) { return p.grouping == Grouping::masked ? p.m * p.batch : p.m; }

GemmProblem validated(const GemmProblem& problem) {
  const Result<GemmProblem> result = validate(problem);
  if (!result) throw DeviceFailure(result.error().message);
  return *result;
}

std::string describe(const Plan& plan) { return fmt::format("{} {}", name(plan.kernel), to_string(plan.scheduler.kind)); }

}  // namespace

GroupedMeasurement::GroupedMeasurement(const BenchOptions& options, const std::vector<GroupedShape>& shapes, const DeviceSpec& device)
    : options_(options), device_(device), check_(stream_) {
  std::size_t inputs = 0, outputs = 0, scales = 0, numbers = 0, groups = 0, dense = 0, codes = 0;
  for (const GroupedShape& shape : shapes) {
    const Operands operands = place(shape);
    const GemmProblem p = validated(problem_in_memory(shape));
    const std::size_t all_sets = static_cast<std::size_t>(operands.sets) * (operands.a_bytes + operands.b_bytes);
    dense = std::max(dense, static_cast<std::size_t>(operands.sets) * operands.dense_b_bytes);
    if (has_w4(shape)) codes = std::max(codes, padded(product(p.n, p.k) / 2) + padded(2 * product(p.n, w4_groups(p.k, kBenchW4))));
    inputs = std::max(inputs, all_sets + operands.moved_bytes);  // a stream of as many bytes may begin in the last set
    outputs = std::max(outputs, static_cast<std::size_t>(operands.sets) * operands.d_bytes);
    scales = std::max(scales, sizeof(float) * static_cast<std::size_t>(std::max(scale_elems_a(p), scale_elems_b(p))));
    numbers = std::max(numbers, sizeof(std::int32_t) * (shape.rows.size() + 1));
    if (shape.grouping == Grouping::general)
      groups = std::max(groups, static_cast<std::size_t>(operands.sets) * shape.rows.size() * sizeof(GroupArguments));
  }
  inputs_ = DeviceBuffer(std::max<std::size_t>(inputs, 1));
  dense_b_ = DeviceBuffer(std::max<std::size_t>(dense, 1));
  codes_ = DeviceBuffer(std::max<std::size_t>(codes, 1));
  outputs_ = DeviceBuffer(std::max<std::size_t>(outputs, 1));
  scales_ = DeviceBuffer(std::max<std::size_t>(scales, 16));
  numbers_ = DeviceBuffer(std::max<std::size_t>(numbers, 16));
  groups_ = DeviceBuffer(std::max<std::size_t>(groups, 16));
  const auto elements = static_cast<std::int64_t>(scales_.size_bytes() / sizeof(float));
  fill_random(scales_.data(), DataType::fp32, {.length = elements, .pitch = elements}, Distribution::positive, 2, stream_,
              1 / spread(DataType::e4m3));
}

GroupedMeasurement::Operands GroupedMeasurement::place(const GroupedShape& shape) {
  const GemmProblem p = validated(problem_in_memory(shape));
  Operands operands;
  const auto element = static_cast<std::size_t>(size_bytes(p.type_a));
  operands.a_bytes = padded(product(rows_in_memory(p), p.k) * element);
  const bool along_k = p.grouping == Grouping::along_k;
  operands.b_bytes =
      has_w4(shape) ? padded(product(p.batch, p.batch_stride_b)) : padded(product(along_k ? 1 : p.batch, p.n, p.k) * element);
  operands.dense_b_bytes = has_w4(shape) ? padded(product(p.batch, p.n, p.k) * element) : 0;
  operands.d_bytes = padded(product(along_k ? p.batch * p.m : rows_in_memory(p), p.n) * static_cast<std::size_t>(size_bytes(p.type_d)));
  operands.moved_bytes = static_cast<std::size_t>(bytes(shape));
  const std::size_t wanted = sets_past_cache(operands.moved_bytes, static_cast<std::size_t>(device_.l2_bytes));
  const std::size_t fitting =
      std::max<std::size_t>(1, kMostInputBytes / (operands.a_bytes + operands.b_bytes + operands.dense_b_bytes + operands.d_bytes));
  operands.sets = static_cast<int>(std::min(wanted, fitting));
  return operands;
}

GemmArguments GroupedMeasurement::arguments(const GroupedShape& shape, const Operands& operands, int set, bool dense) const {
  const auto s = static_cast<std::size_t>(set);
  const std::byte* const a = inputs_.data() + s * (operands.a_bytes + operands.b_bytes);
  const std::byte* const b = dense && has_w4(shape) ? dense_b_.data() + s * operands.dense_b_bytes : a + operands.a_bytes;
  GemmArguments all{.a = a, .b = b, .d = outputs_.data() + s * operands.d_bytes};
  if (is_fp8(shape.type)) all.scale_a = all.scale_b = reinterpret_cast<const float*>(scales_.data());
  all.groups = reinterpret_cast<const std::int32_t*>(numbers_.data());
  return all;
}

// Each group's rows, and the weights that they are multiplied with, where ragged groups have them, and the scales of both.
void GroupedMeasurement::place_groups(const GroupedShape& shape, const Operands& operands) {
  const GemmProblem p = validated(problem_in_memory(shape));
  const std::int64_t element = size_bytes(p.type_a), element_d = size_bytes(p.type_d);
  const std::int64_t between_rows = p.scale_layout_a == Layout::column_major ? 1 : p.ld_scale_a;  // from scale to scale of A
  std::vector<GroupArguments> groups;
  for (int set = 0; set < operands.sets; ++set) {
    const GemmArguments all = arguments(shape, operands, set, true);
    const auto *a = static_cast<const std::byte*>(all.a), *b = static_cast<const std::byte*>(all.b);
    auto* d = static_cast<std::byte*>(all.d);
    const float *scale_a = all.scale_a, *scale_b = all.scale_b;
    for (const std::int32_t rows : shape.rows) {
      GroupArguments group{
          .a = a, .b = b, .d = d, .m = rows, .n = static_cast<std::int32_t>(shape.n), .k = static_cast<std::int32_t>(shape.k)};
      if (is_fp8(shape.type)) {
        group.scale_a = scale_a, group.scale_b = scale_b;
        group.ld_scale_a = p.ld_scale_a, group.ld_scale_b = p.ld_scale_b;
        scale_a += rows * between_rows;
        scale_b += p.batch_stride_scale_b;
      }
      groups.push_back(group);
      a += rows * shape.k * element;
      b += shape.n * shape.k * element;
      d += rows * shape.n * element_d;
    }
  }
  check(cudaMemcpyAsync(groups_.data(), groups.data(), groups.size() * sizeof(GroupArguments), cudaMemcpyHostToDevice, stream_),
        "placing groups");
  stream_.synchronize("placing groups");
}

void GroupedMeasurement::reserve_workspace(const Plan& plan) {
  if (plan.workspace_bytes <= workspace_.size_bytes()) return;
  stream_.synchronize("replacing the workspace");
  workspace_ = DeviceBuffer(plan.workspace_bytes);
  if (Status s = prepare_workspace(workspace_.data(), workspace_.size_bytes(), stream_); !s) throw DeviceFailure(s.error().message);
}

Enqueue GroupedMeasurement::enqueue(const GroupedShape& shape, const Operands& operands, const Plan& plan) {
  reserve_workspace(plan);
  const bool dense = plan.problem.type_b != DataType::int4, general = plan.problem.grouping == Grouping::general;
  return [this, &shape, &operands, &plan, dense, general](int set, cudaStream_t stream) {
    const auto* const groups = reinterpret_cast<const GroupArguments*>(groups_.data()) + static_cast<std::size_t>(set) * shape.rows.size();
    const GemmArguments given = general ? GemmArguments{.group_arguments = groups} : arguments(shape, operands, set, dense);
    const Status status = run(plan, given, workspace_.data(), workspace_.size_bytes(), stream);
    if (!status) throw DeviceFailure(status.error().message);
  };
}

std::string GroupedMeasurement::verify(const GroupedShape& shape, const Operands& operands, const Plan& plan) {
  const GemmArguments first = arguments(shape, operands, 0, true);
  check(cudaMemsetAsync(first.d, kPoisonByte, operands.d_bytes, stream_), "poisoning an output");
  enqueue(shape, operands, plan)(0, stream_);
  check_.reset();
  const GemmProblem in_memory = shape.grouping == Grouping::general ? validated(problem_in_memory(shape)) : plan.problem;
  check_.against_reference(with_dense_weights(in_memory), first, nullptr, Exactness::bounded, kSamples);
  const CheckReport report = check_.fetch();
  return report.ok() ? "" : to_string(report);
}

// With each of those it is compared with in turns of its own: a product that needs much power lowers the clock of what comes next.
void GroupedMeasurement::time_all(const GroupedShape& shape, const Operands& operands, const Plan& plan, GroupedResult& result) {
  const Enqueue own = enqueue(shape, operands, plan);
  const auto beside = [&](const Enqueue& other) {
    return time_beside(own, other, operands.sets, kTimedShare * options_.seconds_per_shape / 2, stream_, options_.rounds);
  };
  std::tie(result.grouped, result.stream) =
      beside([&](int set, cudaStream_t stream) { stream_through(arguments(shape, operands, set, false).a, operands.moved_bytes, stream); });
  // Masked rows do not lie together, so that one product has no place for them.
  Result<Plan> dense = sluice::plan(dense_problem(shape), device_, options_.plan_options);
  if (shape.grouping != Grouping::masked && dense.ok())
    std::tie(result.beside_dense, result.dense) = beside(enqueue(shape, operands, *dense));
}

void GroupedMeasurement::time_candidates(const GroupedShape& shape, const Operands& operands, const Plan& plan, GroupedResult& result) {
  for (const Candidate& candidate : plan.candidates) {
    if (candidate.verdict != CandidateVerdict::chosen && candidate.verdict != CandidateVerdict::slower) continue;
    const Result<Plan> made = sluice::plan(plan.problem, device_, only(candidate, options_.plan_options));
    if (!made) continue;
    if (std::string wrong = verify(shape, operands, *made); !wrong.empty()) {
      result.wrong = describe(*made) + ": " + wrong;
      return;
    }
    const Enqueue one = enqueue(shape, operands, *made);
    const double estimate = estimate_us(one, operands.sets, stream_);
    double us = estimate;
    if (result.best_us == 0 || estimate < 1.3 * result.best_us) {
      const int launches = launches_for(estimate, operands.sets, kGraphUs / 2);
      const Graph graph = make_graph(one, operands.sets, launches, stream_);
      us = time_in_turns({&graph}, launches, 3, stream_).front().us;
    }
    fmt::print(stderr, "  {:>9.2f} us, predicted {:>9.2f}  {}\n", us, candidate.predicted.total_us, describe(*made));
    if (result.best_us > 0 && us >= result.best_us) continue;
    result.best_us = us;
    result.best = describe(*made);
  }
}

// Each group's weights, packed behind the rows of A, and what they are in bf16.
void GroupedMeasurement::fill_w4(const GroupedShape& shape, const Operands& operands) {
  const GemmProblem p = validated(grouped_problem(shape));
  std::byte* const code_scales = codes_.data() + padded(product(p.n, p.k) / 2);
  for (int set = 0; set < operands.sets; ++set) {
    std::byte* packed = inputs_.data() + static_cast<std::size_t>(set) * (operands.a_bytes + operands.b_bytes) + operands.a_bytes;
    std::byte* dense = dense_b_.data() + static_cast<std::size_t>(set) * operands.dense_b_bytes;
    for (std::int64_t group = 0; group < p.batch; ++group) {
      const auto seed = static_cast<std::uint64_t>(2 * (set * p.batch + group));
      make_random_w4(p.n, p.k, p.type_a, seed, {.codes = codes_.data(), .scales = code_scales, .packed = packed, .dense = dense}, stream_);
      packed += p.batch_stride_b;
      dense += product(p.n, p.k) * static_cast<std::size_t>(size_bytes(p.type_a));
    }
  }
  filled_ = DataType::fp32;  // none that fill_random() made
}

GroupedResult GroupedMeasurement::measure(const GroupedShape& shape) {
  GroupedResult result{.shape = shape};
  const Result<Plan> plan = sluice::plan(grouped_problem(shape), device_, options_.plan_options);
  if (!plan) {
    result.wrong = plan.error().message;
    return result;
  }
  result.kernel = name(plan->kernel);
  result.scheduler = to_string(plan->scheduler.kind);
  const DataType type = has_w4(shape) ? DataType::bf16 : shape.type;
  if (filled_ != type) {
    const std::int64_t elements = static_cast<std::int64_t>(inputs_.size_bytes()) / size_bytes(type);
    fill_random(inputs_.data(), type, {.length = elements, .pitch = elements}, Distribution::normal, 1, stream_, spread(type));
    filled_ = type;
  }
  const std::vector<std::int32_t> numbers = group_numbers(shape);
  check(cudaMemcpyAsync(numbers_.data(), numbers.data(), numbers.size() * sizeof(std::int32_t), cudaMemcpyHostToDevice, stream_),
        "placing the sizes of groups");
  const Operands operands = place(shape);
  if (has_w4(shape)) fill_w4(shape, operands);
  if (shape.grouping == Grouping::general) place_groups(shape, operands);
  stream_.synchronize("making operands");
  try {
    result.wrong = verify(shape, operands, *plan);
  } catch (const DeviceFailure& failure) {
    result.wrong = failure.what();
    check(cudaDeviceSynchronize(), result.kernel + " broke the GPU at " + to_string(shape));
    return result;
  }
  time_all(shape, operands, *plan, result);
  if (options_.planner) time_candidates(shape, operands, *plan, result);
  return result;
}

}  // namespace sluice::bench
