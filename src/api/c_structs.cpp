#include "api/c_structs.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace sluice {
namespace {

// The layouts of the first release, which no later one may change. A new field goes to the end.
static_assert(sizeof(void*) != 8 ||
              (sizeof(sluice_problem) == 272 && sizeof(sluice_device) == 144 && sizeof(sluice_plan_options) == 72 &&
               sizeof(sluice_plan_info) == 136 && sizeof(sluice_arguments) == 96 && sizeof(sluice_emulator_options) == 32 &&
               sizeof(sluice_quantize_problem) == 80 && sizeof(sluice_quantize_arguments) == 40 && sizeof(sluice_pack_w4_problem) == 48 &&
               sizeof(sluice_pack_w4_arguments) == 48 && sizeof(sluice_histogram_problem) == 56 &&
               sizeof(sluice_histogram_arguments) == 24 && sizeof(sluice_attention_problem) == 128 &&
               sizeof(sluice_attention_arguments) == 96));
static_assert(offsetof(sluice_problem, type_a) == 40 && offsetof(sluice_problem, batch_stride_a) == 88 &&
              offsetof(sluice_problem, alpha) == 140 && offsetof(sluice_problem, expected_rows) == 216 &&
              offsetof(sluice_problem, scaling_d) == 240 && offsetof(sluice_arguments, scale_d) == 72 &&
              offsetof(sluice_device, l2_bytes) == 88);
static_assert(SLUICE_PACKED == kPacked);
// An array of one is an array of the other.
static_assert(sizeof(sluice_group_arguments) == sizeof(GroupArguments) &&
              offsetof(sluice_group_arguments, d) == offsetof(GroupArguments, d) &&
              offsetof(sluice_group_arguments, bias) == offsetof(GroupArguments, bias) &&
              offsetof(sluice_group_arguments, scale_a) == offsetof(GroupArguments, scale_a) &&
              offsetof(sluice_group_arguments, scale_b) == offsetof(GroupArguments, scale_b) &&
              offsetof(sluice_group_arguments, m) == offsetof(GroupArguments, m) &&
              offsetof(sluice_group_arguments, k) == offsetof(GroupArguments, k) &&
              offsetof(sluice_group_arguments, lda) == offsetof(GroupArguments, lda) &&
              offsetof(sluice_group_arguments, ldd) == offsetof(GroupArguments, ldd) &&
              offsetof(sluice_group_arguments, ld_scale_a) == offsetof(GroupArguments, ld_scale_a) &&
              offsetof(sluice_group_arguments, ld_scale_b) == offsetof(GroupArguments, ld_scale_b));

constexpr bool same(int c, auto cpp) { return c == static_cast<int>(cpp); }
static_assert(same(SLUICE_BF16, DataType::bf16) && same(SLUICE_FP16, DataType::fp16) && same(SLUICE_FP32, DataType::fp32) &&
              same(SLUICE_E4M3, DataType::e4m3) && same(SLUICE_E5M2, DataType::e5m2) && same(SLUICE_INT4, DataType::int4));
static_assert(same(SLUICE_NO_SCALES, Scaling::none) && same(SLUICE_PER_TENSOR, Scaling::per_tensor) &&
              same(SLUICE_PER_VECTOR, Scaling::per_vector) && same(SLUICE_PER_VECTOR_128, Scaling::per_vector_128) &&
              same(SLUICE_PER_BLOCK_128, Scaling::per_block_128));
static_assert(same(SLUICE_NO_GROUPS, Grouping::none) && same(SLUICE_RAGGED_GROUPS, Grouping::ragged) &&
              same(SLUICE_MASKED_GROUPS, Grouping::masked) && same(SLUICE_GROUPS_ALONG_K, Grouping::along_k) &&
              same(SLUICE_GENERAL_GROUPS, Grouping::general));
static_assert(same(SLUICE_ROW_MAJOR, Layout::row_major) && same(SLUICE_COLUMN_MAJOR, Layout::column_major));
static_assert(same(SLUICE_ACTIVATION_NONE, Activation::none) && same(SLUICE_RELU, Activation::relu) &&
              same(SLUICE_GELU_TANH, Activation::gelu_tanh) && same(SLUICE_SILU, Activation::silu));
static_assert(same(SLUICE_BIAS_NONE, Bias::none) && same(SLUICE_BIAS_PER_ROW, Bias::per_row) &&
              same(SLUICE_BIAS_PER_COLUMN, Bias::per_column) && same(SLUICE_BIAS_PER_GROUP_COLUMN, Bias::per_group_column));
// 0 is "any" in the options, so these are one higher.
static_assert(same(SLUICE_COOPERATIVE - 1, KernelSchedule::cooperative) && same(SLUICE_PINGPONG - 1, KernelSchedule::pingpong) &&
              same(SLUICE_STREAMING - 1, KernelSchedule::streaming) && same(SLUICE_SLICED_K - 1, KernelSchedule::sliced_k));
static_assert(same(SLUICE_ONE_TILE_PER_CTA - 1, SchedulerKind::one_tile_per_cta) &&
              same(SLUICE_DATA_PARALLEL - 1, SchedulerKind::data_parallel) && same(SLUICE_SPLIT_K - 1, SchedulerKind::split_k) &&
              same(SLUICE_STREAM_K - 1, SchedulerKind::stream_k) && same(SLUICE_HYBRID - 1, SchedulerKind::hybrid));
static_assert(same(SLUICE_WORKSPACE_REDUCTION - 1, Reduction::workspace) && same(SLUICE_SEPARATE_REDUCTION - 1, Reduction::separate) &&
              same(SLUICE_CLUSTER_REDUCTION - 1, Reduction::cluster));
static_assert(same(SLUICE_FIXED_CLAIM - 1, WorkClaim::fixed) && same(SLUICE_TICKET_CLAIM - 1, WorkClaim::ticket));
static_assert(same(SLUICE_ASYNCHRONY_RANDOM, Asynchrony::random) && same(SLUICE_ASYNCHRONY_EAGER, Asynchrony::eager) &&
              same(SLUICE_ASYNCHRONY_LAZY, Asynchrony::lazy) && same(SLUICE_ASYNCHRONY_MIXED, Asynchrony::mixed));
static_assert(same(SLUICE_BACKEND_CUDA, Backend::cuda) && same(SLUICE_BACKEND_EMULATOR, Backend::emulator) &&
              same(SLUICE_BACKEND_REFERENCE, Backend::reference));
static_assert(same(SLUICE_SAMPLE_INT32, HistogramSample::int32) && same(SLUICE_SAMPLE_UINT8, HistogramSample::uint8) &&
              same(SLUICE_SAMPLE_FLOAT32, HistogramSample::float32) && same(SLUICE_COUNT_INT32, CountType::int32) &&
              same(SLUICE_COUNT_INT64, CountType::int64) && same(SLUICE_OUTSIDE_IGNORED, OutsideValues::ignored) &&
              same(SLUICE_OUTSIDE_CLAMPED, OutsideValues::clamped));
static_assert(same(SLUICE_TOKENS_FIRST, KvLayout::tokens_first) && same(SLUICE_HEADS_FIRST, KvLayout::heads_first));
static_assert(same(SLUICE_PLAIN, QuantizeInput::plain) && same(SLUICE_SILU_TIMES, QuantizeInput::silu_times));
static_assert(same(SLUICE_W4_PLAIN, W4Source::plain) && same(SLUICE_W4_GPTQ, W4Source::gptq) && same(SLUICE_W4_AWQ, W4Source::awq));
static_assert(same(SLUICE_ALONG_M - 1, Rasterization::along_m) && same(SLUICE_ALONG_N - 1, Rasterization::along_n));

// Turns numbers into enumerators, and keeps the first that is none.
class Enumerators {
 public:
  template <class Enum>
  void read(const char* field, const char* type, std::int32_t number, int largest, Enum& to) {
    if (in_range(field, type, number, largest)) to = static_cast<Enum>(number);
  }

  // 0 leaves it free.
  template <class Enum>
  void read(const char* field, const char* type, std::int32_t number, int largest, std::optional<Enum>& to) {
    if (in_range(field, type, number, largest) && number != 0) to = static_cast<Enum>(number - 1);
  }

  const std::optional<Error>& error() const { return error_; }

 private:
  bool in_range(const char* field, const char* type, std::int32_t number, int largest) {
    const bool fits = number >= 0 && number <= largest;
    if (!fits && !error_)
      error_ = Error{ErrorCode::invalid_argument, std::string(field) + " = " + std::to_string(number) + " is no value of enum " + type +
                                                      ", which go from 0 to " + std::to_string(largest)};
    return fits;
  }

  std::optional<Error> error_;
};

// A name that is too long is cut.
sluice_device as_struct(const DeviceSpec& spec) {
  sluice_device c{};
  std::copy_n(spec.name.begin(), std::min(spec.name.size(), sizeof c.name - 1), c.name);
  c.compute_capability = spec.compute_capability;
  c.sm_count = spec.sm_count;
  c.clusters_of_2 = spec.clusters_of_2;
  c.shared_memory_per_cta_bytes = spec.shared_memory_per_cta_bytes;
  c.l2_bytes = spec.l2_bytes;
  c.clock_ghz = spec.clock_ghz;
  c.hbm_gb_per_s = spec.hbm_gb_per_s;
  c.l2_gb_per_s = spec.l2_gb_per_s;
  c.flops_per_clk_per_sm = spec.flops_per_clk_per_sm;
  c.sustained_fraction = spec.sustained_fraction;
  c.launch_us = spec.launch_us;
  return c;
}

}  // namespace

sluice_device default_of(const sluice_device*) { return as_struct(DeviceSpec{}); }

sluice_problem default_of(const sluice_problem*) {
  const GemmProblem p;
  sluice_problem c{};
  c.m = p.m, c.n = p.n, c.k = p.k, c.batch = p.batch;
  c.type_a = static_cast<std::int32_t>(p.type_a), c.type_b = static_cast<std::int32_t>(p.type_b),
  c.type_d = static_cast<std::int32_t>(p.type_d);
  c.layout_a = static_cast<std::int32_t>(p.layout_a), c.layout_b = static_cast<std::int32_t>(p.layout_b);
  c.lda = p.lda, c.ldb = p.ldb, c.ldc = p.ldc, c.ldd = p.ldd;
  c.batch_stride_a = p.batch_stride_a, c.batch_stride_b = p.batch_stride_b;
  c.batch_stride_c = p.batch_stride_c, c.batch_stride_d = p.batch_stride_d;
  c.alignment_a_bytes = p.alignment_a_bytes, c.alignment_b_bytes = p.alignment_b_bytes, c.alignment_d_bytes = p.alignment_d_bytes;
  c.bias = static_cast<std::int32_t>(p.epilogue.bias), c.activation = static_cast<std::int32_t>(p.epilogue.activation);
  c.alpha = p.epilogue.alpha, c.beta = p.epilogue.beta;
  c.constant_a = p.constant_a ? 1 : 0, c.constant_b = p.constant_b ? 1 : 0;
  c.scaling_a = static_cast<std::int32_t>(p.scaling_a), c.scaling_b = static_cast<std::int32_t>(p.scaling_b);
  c.scale_layout_a = static_cast<std::int32_t>(p.scale_layout_a), c.scale_layout_b = static_cast<std::int32_t>(p.scale_layout_b);
  c.ld_scale_a = p.ld_scale_a, c.ld_scale_b = p.ld_scale_b;
  c.batch_stride_scale_a = p.batch_stride_scale_a, c.batch_stride_scale_b = p.batch_stride_scale_b;
  c.grouping = static_cast<std::int32_t>(p.grouping), c.expected_rows = p.expected_rows, c.most_rows = p.most_rows;
  c.w4_group_size = p.w4.group_size, c.w4_zero_points = p.w4.zero_points ? 1 : 0;
  c.scaling_d = static_cast<std::int32_t>(p.scaling_d), c.scale_layout_d = static_cast<std::int32_t>(p.scale_layout_d);
  c.ld_scale_d = p.ld_scale_d, c.batch_stride_scale_d = p.batch_stride_scale_d;
  return c;
}

Result<GemmProblem> to_problem(const sluice_problem& given) {
  const Result<sluice_problem> whole = read_struct(given);
  if (!whole) return whole.error();
  const sluice_problem& c = *whole;
  for (const auto& [field, value] : {std::pair{"reserved", c.reserved}, {"reserved2", c.reserved2}, {"reserved3", c.reserved3}})
    if (value != 0)
      return Error{ErrorCode::invalid_argument,
                   std::string(field) + " = " + std::to_string(value) + " of a sluice_problem must be 0; call sluice_problem_init"};
  const bool knows_type_b = given.struct_size > offsetof(sluice_problem, type_b);  // older callers had one type for both
  GemmProblem p{.m = c.m, .n = c.n, .k = c.k, .batch = c.batch};
  Enumerators enums;
  enums.read("type_a", "sluice_data_type", c.type_a, SLUICE_INT4, p.type_a);
  enums.read("type_b", "sluice_data_type", knows_type_b ? c.type_b : c.type_a, SLUICE_INT4, p.type_b);
  enums.read("type_d", "sluice_data_type", c.type_d, SLUICE_INT4, p.type_d);
  enums.read("layout_a", "sluice_layout", c.layout_a, SLUICE_COLUMN_MAJOR, p.layout_a);
  enums.read("layout_b", "sluice_layout", c.layout_b, SLUICE_COLUMN_MAJOR, p.layout_b);
  enums.read("scaling_a", "sluice_scaling", c.scaling_a, SLUICE_PER_BLOCK_128, p.scaling_a);
  enums.read("scaling_b", "sluice_scaling", c.scaling_b, SLUICE_PER_BLOCK_128, p.scaling_b);
  enums.read("scale_layout_a", "sluice_layout", c.scale_layout_a, SLUICE_COLUMN_MAJOR, p.scale_layout_a);
  enums.read("scale_layout_b", "sluice_layout", c.scale_layout_b, SLUICE_COLUMN_MAJOR, p.scale_layout_b);
  enums.read("scaling_d", "sluice_scaling", c.scaling_d, SLUICE_PER_BLOCK_128, p.scaling_d);
  enums.read("scale_layout_d", "sluice_layout", c.scale_layout_d, SLUICE_COLUMN_MAJOR, p.scale_layout_d);
  enums.read("grouping", "sluice_grouping", c.grouping, SLUICE_GENERAL_GROUPS, p.grouping);
  enums.read("bias", "sluice_bias", c.bias, SLUICE_BIAS_PER_GROUP_COLUMN, p.epilogue.bias);
  enums.read("activation", "sluice_activation", c.activation, SLUICE_SILU, p.epilogue.activation);
  if (enums.error()) return *enums.error();
  p.lda = c.lda, p.ldb = c.ldb, p.ldc = c.ldc, p.ldd = c.ldd;
  p.batch_stride_a = c.batch_stride_a, p.batch_stride_b = c.batch_stride_b;
  p.batch_stride_c = c.batch_stride_c, p.batch_stride_d = c.batch_stride_d;
  p.alignment_a_bytes = c.alignment_a_bytes, p.alignment_b_bytes = c.alignment_b_bytes, p.alignment_d_bytes = c.alignment_d_bytes;
  p.epilogue.alpha = c.alpha, p.epilogue.beta = c.beta;
  p.constant_a = c.constant_a != 0, p.constant_b = c.constant_b != 0;
  p.ld_scale_a = c.ld_scale_a, p.ld_scale_b = c.ld_scale_b;
  p.batch_stride_scale_a = c.batch_stride_scale_a, p.batch_stride_scale_b = c.batch_stride_scale_b;
  p.ld_scale_d = c.ld_scale_d, p.batch_stride_scale_d = c.batch_stride_scale_d;
  p.expected_rows = c.expected_rows, p.most_rows = c.most_rows;
  p.w4 = {.group_size = c.w4_group_size, .zero_points = c.w4_zero_points != 0};
  return p;
}

Result<DeviceSpec> to_device_spec(const sluice_device& given) {
  const Result<sluice_device> whole = read_struct(given);
  if (!whole) return whole.error();
  const sluice_device& c = *whole;
  const char* const end = std::find(c.name, c.name + sizeof c.name, '\0');
  if (end == c.name + sizeof c.name)
    return Error{ErrorCode::invalid_argument,
                 "the name of a sluice_device must end with 0 within its " + std::to_string(sizeof c.name) + " bytes"};
  return DeviceSpec{.name = std::string(c.name, end),
                    .compute_capability = c.compute_capability,
                    .sm_count = c.sm_count,
                    .clusters_of_2 = c.clusters_of_2,
                    .shared_memory_per_cta_bytes = c.shared_memory_per_cta_bytes,
                    .l2_bytes = c.l2_bytes,
                    .clock_ghz = c.clock_ghz,
                    .hbm_gb_per_s = c.hbm_gb_per_s,
                    .l2_gb_per_s = c.l2_gb_per_s,
                    .flops_per_clk_per_sm = c.flops_per_clk_per_sm,
                    .sustained_fraction = c.sustained_fraction,
                    .launch_us = c.launch_us};
}

Result<PlanOptions> to_plan_options(const sluice_plan_options& given) {
  const Result<sluice_plan_options> whole = read_struct(given);
  if (!whole) return whole.error();
  const sluice_plan_options& c = *whole;
  PlanOptions options{.splits = c.splits,
                      .stream_k_regions = c.stream_k_regions,
                      .min_k_tiles = c.min_k_tiles,
                      .lead = c.lead,
                      .tile_m = c.tile_m,
                      .tile_n = c.tile_n,
                      .keep_candidates = c.forget_candidates == 0};
  Enumerators enums;
  enums.read("schedule", "sluice_schedule", c.schedule, SLUICE_SLICED_K, options.schedule);
  enums.read("scheduler", "sluice_scheduler", c.scheduler, SLUICE_HYBRID, options.scheduler);
  enums.read("raster", "sluice_raster", c.raster, SLUICE_ALONG_N, options.raster);
  enums.read("claim", "sluice_work_claim", c.claim, SLUICE_TICKET_CLAIM, options.claim);
  enums.read("reduction", "sluice_reduction", c.reduction, SLUICE_CLUSTER_REDUCTION, options.reduction);
  constexpr std::array kDeterminisms = {Determinism::deterministic, Determinism::fast, Determinism::batch_invariant};
  std::size_t determinism = 0;
  enums.read("determinism", "sluice_determinism", c.determinism, SLUICE_BATCH_INVARIANT, determinism);
  if (enums.error()) return *enums.error();
  options.determinism = kDeterminisms.at(determinism);
  if (c.kernel_name != nullptr) options.kernel_name = c.kernel_name;
  return options;
}

Result<GemmArguments> to_arguments(const sluice_arguments& given) {
  const Result<sluice_arguments> whole = read_struct(given);
  if (!whole) return whole.error();
  const sluice_arguments& c = *whole;
  if (c.group_arguments != nullptr && c.group_arguments_size != sizeof(sluice_group_arguments))
    return Error{ErrorCode::invalid_argument, "group_arguments_size = " + std::to_string(c.group_arguments_size) +
                                                  ", and this library has " + std::to_string(sizeof(sluice_group_arguments)) +
                                                  " bytes in a sluice_group_arguments; pass the size of yours, which must be the same"};
  return GemmArguments{.a = c.a,
                       .b = c.b,
                       .c = c.c,
                       .d = c.d,
                       .bias = c.bias,
                       .scale_a = c.scale_a,
                       .scale_b = c.scale_b,
                       .scale_d = c.scale_d,
                       .groups = c.groups,
                       .group_arguments = reinterpret_cast<const GroupArguments*>(c.group_arguments)};
}

sluice_emulator_options default_of(const sluice_emulator_options*) {
  const EmulatorOptions o;
  sluice_emulator_options c{};
  c.seed = o.seed;
  c.asynchrony = static_cast<std::int32_t>(o.asynchrony);
  c.resident_clusters = o.resident_clusters;
  c.diagnose = o.diagnose ? 1 : 0;
  return c;
}

Result<EmulatorOptions> to_emulator_options(const sluice_emulator_options* given) {
  if (given == nullptr) return EmulatorOptions{};
  const Result<sluice_emulator_options> whole = read_struct(*given);
  if (!whole) return whole.error();
  const sluice_emulator_options& c = *whole;
  if (c.reserved != 0)
    return Error{ErrorCode::invalid_argument,
                 "reserved = " + std::to_string(c.reserved) + " of a sluice_emulator_options must be 0; call sluice_emulator_options_init"};
  EmulatorOptions options{.seed = c.seed, .resident_clusters = c.resident_clusters, .diagnose = c.diagnose != 0};
  Enumerators enums;
  enums.read("asynchrony", "sluice_asynchrony", c.asynchrony, SLUICE_ASYNCHRONY_MIXED, options.asynchrony);
  if (enums.error()) return *enums.error();
  return options;
}

sluice_quantize_problem default_of(const sluice_quantize_problem*) {
  const QuantizeProblem p;
  sluice_quantize_problem c{};
  c.type_x = static_cast<std::int32_t>(p.type_x), c.type_q = static_cast<std::int32_t>(p.type_q);
  c.input = static_cast<std::int32_t>(p.input), c.scaling = static_cast<std::int32_t>(p.scaling);
  c.power_of_two_scales = p.power_of_two_scales ? 1 : 0, c.scale_layout = static_cast<std::int32_t>(p.scale_layout);
  c.ldx = p.ldx, c.ldy = p.ldy, c.ldq = p.ldq, c.ld_scale = p.ld_scale;
  return c;
}

Result<QuantizeProblem> to_quantize_problem(const sluice_quantize_problem& given) {
  const Result<sluice_quantize_problem> whole = read_struct(given);
  if (!whole) return whole.error();
  const sluice_quantize_problem& c = *whole;
  QuantizeProblem p{.m = c.m,
                    .k = c.k,
                    .power_of_two_scales = c.power_of_two_scales != 0,
                    .ldx = c.ldx,
                    .ldy = c.ldy,
                    .ldq = c.ldq,
                    .ld_scale = c.ld_scale};
  Enumerators enums;
  enums.read("type_x", "sluice_data_type", c.type_x, SLUICE_E5M2, p.type_x);
  enums.read("type_q", "sluice_data_type", c.type_q, SLUICE_E5M2, p.type_q);
  enums.read("input", "sluice_quantize_input", c.input, SLUICE_SILU_TIMES, p.input);
  enums.read("scaling", "sluice_scaling", c.scaling, SLUICE_PER_BLOCK_128, p.scaling);
  enums.read("scale_layout", "sluice_layout", c.scale_layout, SLUICE_COLUMN_MAJOR, p.scale_layout);
  if (enums.error()) return *enums.error();
  return p;
}

sluice_pack_w4_problem default_of(const sluice_pack_w4_problem*) {
  const PackW4Problem p;
  sluice_pack_w4_problem c{};
  c.group_size = p.format.group_size;
  c.zero_points = p.format.zero_points ? 1 : 0;
  c.source = static_cast<std::int32_t>(p.source);
  c.type = static_cast<std::int32_t>(p.type), c.type_scales = static_cast<std::int32_t>(p.type_scales);
  c.zeros_as_stored = p.zeros_less_one ? 0 : 1;
  return c;
}

Result<PackW4Problem> to_pack_w4_problem(const sluice_pack_w4_problem& given) {
  const Result<sluice_pack_w4_problem> whole = read_struct(given);
  if (!whole) return whole.error();
  const sluice_pack_w4_problem& c = *whole;
  PackW4Problem p{.n = c.n,
                  .k = c.k,
                  .format = {.group_size = c.group_size, .zero_points = c.zero_points != 0},
                  .zeros_less_one = c.zeros_as_stored == 0};
  Enumerators enums;
  enums.read("source", "sluice_w4_source", c.source, SLUICE_W4_AWQ, p.source);
  enums.read("type", "sluice_data_type", c.type, SLUICE_E5M2, p.type);
  enums.read("type_scales", "sluice_data_type", c.type_scales, SLUICE_E5M2, p.type_scales);
  if (enums.error()) return *enums.error();
  return p;
}

sluice_attention_problem default_of(const sluice_attention_problem*) {
  const AttentionProblem p;
  sluice_attention_problem c{};
  c.batch = p.batch, c.query_len = p.query_len, c.heads_q = p.heads_q, c.heads_kv = p.heads_kv, c.head_size = p.head_size;
  c.type = static_cast<std::int32_t>(p.type), c.kv_type = static_cast<std::int32_t>(p.kv_type);
  c.kv_layout = static_cast<std::int32_t>(p.kv_layout), c.causal = p.causal ? 1 : 0;
  return c;
}
Result<AttentionProblem> to_attention_problem(const sluice_attention_problem& given) {
  const Result<sluice_attention_problem> whole = read_struct(given);
  if (!whole) return whole.error();
  const sluice_attention_problem& c = *whole;
  AttentionProblem p{.batch = c.batch,
                     .query_len = c.query_len,
                     .heads_q = c.heads_q,
                     .heads_kv = c.heads_kv,
                     .head_size = c.head_size,
                     .max_kv_len = c.max_kv_len,
                     .page_size = c.page_size,
                     .pages = c.pages,
                     .kv_stride = c.kv_stride,
                     .scale = c.scale,
                     .soft_cap = c.soft_cap,
                     .window = c.window,
                     .causal = c.causal != 0,
                     .lse = c.lse != 0,
                     .constant_cache = c.constant_cache != 0};
  Enumerators enums;
  enums.read("type", "sluice_data_type", c.type, SLUICE_INT4, p.type);
  enums.read("kv_type", "sluice_data_type", c.kv_type, SLUICE_INT4, p.kv_type);
  enums.read("kv_layout", "sluice_kv_layout", c.kv_layout, SLUICE_HEADS_FIRST, p.kv_layout);
  if (enums.error()) return *enums.error();
  return p;
}

sluice_histogram_problem default_of(const sluice_histogram_problem*) {
  const HistogramProblem p;
  sluice_histogram_problem c{};
  c.n = p.n, c.bins = p.bins, c.first = p.first, c.lower = p.lower, c.upper = p.upper;
  c.sample = static_cast<std::int32_t>(p.sample), c.count_type = static_cast<std::int32_t>(p.count_type);
  c.outside = static_cast<std::int32_t>(p.outside), c.accumulate = p.accumulate ? 1 : 0;
  return c;
}

Result<HistogramProblem> to_histogram_problem(const sluice_histogram_problem& given) {
  const Result<sluice_histogram_problem> whole = read_struct(given);
  if (!whole) return whole.error();
  const sluice_histogram_problem& c = *whole;
  HistogramProblem p{.n = c.n, .bins = c.bins, .first = c.first, .lower = c.lower, .upper = c.upper, .accumulate = c.accumulate != 0};
  Enumerators enums;
  enums.read("sample", "sluice_histogram_sample", c.sample, SLUICE_SAMPLE_FLOAT32, p.sample);
  enums.read("count_type", "sluice_count_type", c.count_type, SLUICE_COUNT_INT64, p.count_type);
  enums.read("outside", "sluice_outside_values", c.outside, SLUICE_OUTSIDE_CLAMPED, p.outside);
  if (enums.error()) return *enums.error();
  return p;
}

Status from_device_spec(const DeviceSpec& spec, sluice_device& to) {
  constexpr std::size_t kMostBytes = sizeof to.name - 1;
  if (spec.name.size() > kMostBytes)
    return Error{ErrorCode::too_large, "the device's name '" + spec.name + "' is longer than the " + std::to_string(kMostBytes) +
                                           " bytes of a sluice_device; shorten it"};
  return write_struct(as_struct(spec), to);
}

Status from_plan(const Plan& plan, sluice_plan_info& to) {
  const PredictedTime& t = plan.predicted;
  sluice_plan_info c{};
  c.workspace_bytes = plan.workspace_bytes;
  c.grid_ctas = plan.grid_ctas;
  c.worker_count = plan.worker_count;
  c.shared_memory_bytes = plan.shared_memory_bytes;
  c.candidate_count = static_cast<std::int32_t>(plan.candidates.size());
  c.total_us = t.total_us;
  c.launch_us = t.launch_us;
  c.matrix_us = t.matrix_us;
  c.hbm_us = t.hbm_us;
  c.l2_us = t.l2_us;
  c.ramp_us = t.ramp_us;
  c.exposed_epilogue_us = t.exposed_epilogue_us;
  c.reduction_us = t.reduction_us;
  c.learnt_us = t.learnt_us;
  c.power_us = t.power_us;
  c.waves = t.waves;
  c.useful_share = t.useful_share;
  c.busy_share = t.busy_share;
  return write_struct(c, to);
}

}  // namespace sluice
