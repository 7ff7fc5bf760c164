#include <array>
#include <utility>

#include "sluice/emulator.hpp"
#include "sluice/error.hpp"
#include "sluice/grouping.hpp"
#include "sluice/histogram.hpp"
#include "sluice/kernel_config.hpp"
#include "sluice/plan.hpp"
#include "sluice/quantize.hpp"
#include "sluice/scaling.hpp"
#include "sluice/schedule.hpp"
#include "sluice/types.hpp"
#include "sluice/version.hpp"
#include "sluice/w4.hpp"

#define SLUICE_TEXT_OF(x) #x
#define SLUICE_TEXT(x) SLUICE_TEXT_OF(x)

namespace sluice {
namespace {

template <class Enum, std::size_t count>
using Names = std::array<std::pair<Enum, const char*>, count>;

template <class Enum, std::size_t count>
const char* find_name(const Names<Enum, count>& names, Enum value) {
  for (const auto& [candidate, text] : names)
    if (candidate == value) return text;
  return "?";
}

template <class Enum, std::size_t count>
std::optional<Enum> find_value(const Names<Enum, count>& names, std::string_view wanted) {
  for (const auto& [candidate, text] : names)
    if (wanted == text) return candidate;
  return std::nullopt;
}

constexpr Names<DataType, 6> kDataTypes{{{DataType::bf16, "bf16"},
                                         {DataType::fp16, "fp16"},
                                         {DataType::fp32, "fp32"},
                                         {DataType::e4m3, "e4m3"},
                                         {DataType::e5m2, "e5m2"},
                                         {DataType::int4, "int4"}}};
constexpr Names<HistogramSample, 3> kHistogramSamples{
    {{HistogramSample::int32, "int32"}, {HistogramSample::uint8, "uint8"}, {HistogramSample::float32, "float32"}}};
constexpr Names<CountType, 2> kCountTypes{{{CountType::int32, "int32"}, {CountType::int64, "int64"}}};
constexpr Names<Grouping, 5> kGroupings{{{Grouping::none, "none"},
                                         {Grouping::ragged, "ragged"},
                                         {Grouping::masked, "masked"},
                                         {Grouping::along_k, "along-k"},
                                         {Grouping::general, "general"}}};
constexpr Names<Scaling, 5> kScalings{{{Scaling::none, "none"},
                                       {Scaling::per_tensor, "tensor"},
                                       {Scaling::per_vector, "vector"},
                                       {Scaling::per_vector_128, "1x128"},
                                       {Scaling::per_block_128, "128x128"}}};
constexpr Names<Layout, 2> kLayouts{{{Layout::row_major, "row-major"}, {Layout::column_major, "column-major"}}};
constexpr Names<Activation, 4> kActivations{
    {{Activation::none, "none"}, {Activation::relu, "relu"}, {Activation::gelu_tanh, "gelu_tanh"}, {Activation::silu, "silu"}}};
constexpr Names<Bias, 4> kBiases{
    {{Bias::none, "none"}, {Bias::per_row, "per_row"}, {Bias::per_column, "per_column"}, {Bias::per_group_column, "per_group_column"}}};
constexpr Names<SchedulerKind, 5> kSchedulers{{{SchedulerKind::one_tile_per_cta, "one-tile-per-cta"},
                                               {SchedulerKind::data_parallel, "data-parallel"},
                                               {SchedulerKind::split_k, "split-k"},
                                               {SchedulerKind::stream_k, "stream-k"},
                                               {SchedulerKind::hybrid, "hybrid"}}};
constexpr Names<WorkClaim, 2> kClaims{{{WorkClaim::fixed, "fixed"}, {WorkClaim::ticket, "ticket"}}};
constexpr Names<Reduction, 3> kReductions{
    {{Reduction::workspace, "workspace"}, {Reduction::separate, "separate"}, {Reduction::cluster, "cluster"}}};
constexpr Names<Determinism, 3> kDeterminisms{
    {{Determinism::fast, "fast"}, {Determinism::deterministic, "deterministic"}, {Determinism::batch_invariant, "batch-invariant"}}};
constexpr Names<Rasterization, 2> kRasters{{{Rasterization::along_m, "along-m"}, {Rasterization::along_n, "along-n"}}};
constexpr Names<KernelSchedule, 4> kKernelSchedules{{{KernelSchedule::cooperative, "cooperative"},
                                                     {KernelSchedule::pingpong, "pingpong"},
                                                     {KernelSchedule::streaming, "streaming"},
                                                     {KernelSchedule::sliced_k, "sliced-k"}}};
constexpr Names<OperandOrder, 2> kOperandOrders{{{OperandOrder::rows_of_a, "rows-of-a"}, {OperandOrder::columns_of_b, "columns-of-b"}}};
constexpr Names<LoadPath, 2> kLoadPaths{{{LoadPath::tma, "tma"}, {LoadPath::threads, "threads"}}};
constexpr Names<CandidateVerdict, 11> kVerdicts{{{CandidateVerdict::chosen, "chosen"},
                                                 {CandidateVerdict::slower, "slower"},
                                                 {CandidateVerdict::wrong_type, "wrong-type"},
                                                 {CandidateVerdict::needs_aligned_operands, "needs-aligned-operands"},
                                                 {CandidateVerdict::cluster_does_not_fit, "cluster-does-not-fit"},
                                                 {CandidateVerdict::too_many_tiles, "too-many-tiles"},
                                                 {CandidateVerdict::shared_memory, "shared-memory"},
                                                 {CandidateVerdict::excluded_by_options, "excluded-by-options"},
                                                 {CandidateVerdict::no_groups, "no-groups"},
                                                 {CandidateVerdict::few_rows_only, "few-rows-only"},
                                                 {CandidateVerdict::no_row_scales, "no-row-scales"}}};
constexpr Names<Asynchrony, 4> kAsynchronies{
    {{Asynchrony::random, "random"}, {Asynchrony::eager, "eager"}, {Asynchrony::lazy, "lazy"}, {Asynchrony::mixed, "mixed"}}};
constexpr Names<Backend, 3> kBackends{{{Backend::cuda, "cuda"}, {Backend::emulator, "emulator"}, {Backend::reference, "reference"}}};
constexpr Names<QuantizeInput, 2> kQuantizeInputs{{{QuantizeInput::plain, "plain"}, {QuantizeInput::silu_times, "silu-times"}}};
constexpr Names<W4Source, 3> kW4Sources{{{W4Source::plain, "plain"}, {W4Source::gptq, "gptq"}, {W4Source::awq, "awq"}}};
constexpr Names<ErrorCode, 13> kErrors{{{ErrorCode::invalid_argument, "invalid argument"},
                                        {ErrorCode::misaligned, "misaligned"},
                                        {ErrorCode::unsupported, "unsupported"},
                                        {ErrorCode::too_large, "too large"},
                                        {ErrorCode::workspace_too_small, "workspace too small"},
                                        {ErrorCode::wrong_device, "wrong device"},
                                        {ErrorCode::not_found, "not found"},
                                        {ErrorCode::bad_format, "bad format"},
                                        {ErrorCode::io, "input/output"},
                                        {ErrorCode::cuda, "CUDA"},
                                        {ErrorCode::out_of_memory, "out of memory"},
                                        {ErrorCode::internal, "internal error"},
                                        {ErrorCode::emulation, "emulation"}}};

}  // namespace

const char* version() {
  return SLUICE_TEXT(SLUICE_VERSION_MAJOR) "." SLUICE_TEXT(SLUICE_VERSION_MINOR) "." SLUICE_TEXT(SLUICE_VERSION_PATCH);
}

const char* to_string(Asynchrony asynchrony) { return find_name(kAsynchronies, asynchrony); }
const char* to_string(Backend backend) { return find_name(kBackends, backend); }
const char* to_string(QuantizeInput input) { return find_name(kQuantizeInputs, input); }
const char* to_string(W4Source source) { return find_name(kW4Sources, source); }
const char* to_string(ErrorCode code) { return find_name(kErrors, code); }
const char* to_string(DataType type) { return find_name(kDataTypes, type); }
const char* to_string(HistogramSample sample) { return find_name(kHistogramSamples, sample); }
const char* to_string(CountType type) { return find_name(kCountTypes, type); }
const char* to_string(Layout layout) { return find_name(kLayouts, layout); }
const char* to_string(Activation activation) { return find_name(kActivations, activation); }
const char* to_string(Bias bias) { return find_name(kBiases, bias); }
const char* to_string(Grouping grouping) { return find_name(kGroupings, grouping); }
const char* to_string(Scaling scaling) { return find_name(kScalings, scaling); }
const char* to_string(SchedulerKind kind) { return find_name(kSchedulers, kind); }
const char* to_string(Rasterization raster) { return find_name(kRasters, raster); }
const char* to_string(WorkClaim claim) { return find_name(kClaims, claim); }
const char* to_string(Reduction reduction) { return find_name(kReductions, reduction); }
const char* to_string(Determinism determinism) { return find_name(kDeterminisms, determinism); }
const char* to_string(KernelSchedule schedule) { return find_name(kKernelSchedules, schedule); }
const char* to_string(OperandOrder order) { return find_name(kOperandOrders, order); }
const char* to_string(LoadPath load) { return find_name(kLoadPaths, load); }
const char* to_string(CandidateVerdict verdict) { return find_name(kVerdicts, verdict); }

std::optional<QuantizeInput> parse_quantize_input(std::string_view text) { return find_value(kQuantizeInputs, text); }
std::optional<W4Source> parse_w4_source(std::string_view text) { return find_value(kW4Sources, text); }
std::optional<Asynchrony> parse_asynchrony(std::string_view text) { return find_value(kAsynchronies, text); }
std::optional<Backend> parse_backend(std::string_view text) { return find_value(kBackends, text); }
std::optional<DataType> parse_data_type(std::string_view text) { return find_value(kDataTypes, text); }
std::optional<HistogramSample> parse_histogram_sample(std::string_view text) { return find_value(kHistogramSamples, text); }
std::optional<CountType> parse_count_type(std::string_view text) { return find_value(kCountTypes, text); }
std::optional<Layout> parse_layout(std::string_view text) { return find_value(kLayouts, text); }
std::optional<Activation> parse_activation(std::string_view text) { return find_value(kActivations, text); }
std::optional<Bias> parse_bias(std::string_view text) { return find_value(kBiases, text); }
std::optional<Grouping> parse_grouping(std::string_view text) { return find_value(kGroupings, text); }
std::optional<Scaling> parse_scaling(std::string_view text) { return find_value(kScalings, text); }
std::optional<SchedulerKind> parse_scheduler(std::string_view text) { return find_value(kSchedulers, text); }
std::optional<Rasterization> parse_rasterization(std::string_view text) { return find_value(kRasters, text); }
std::optional<WorkClaim> parse_work_claim(std::string_view text) { return find_value(kClaims, text); }
std::optional<Reduction> parse_reduction(std::string_view text) { return find_value(kReductions, text); }
std::optional<Determinism> parse_determinism(std::string_view text) { return find_value(kDeterminisms, text); }
std::optional<KernelSchedule> parse_kernel_schedule(std::string_view text) { return find_value(kKernelSchedules, text); }
std::optional<OperandOrder> parse_operand_order(std::string_view text) { return find_value(kOperandOrders, text); }
std::optional<LoadPath> parse_load_path(std::string_view text) { return find_value(kLoadPaths, text); }
std::optional<CandidateVerdict> parse_verdict(std::string_view text) { return find_value(kVerdicts, text); }

}  // namespace sluice
