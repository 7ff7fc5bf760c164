// sluice attention: decode attention over keys and values in .npy files, or over random ones.
#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/core.h>

#include "choices.hpp"
#include "gemm_place.hpp"
#include "gpu.hpp"
#include "npy.hpp"
#include "operands.hpp"
#include "session.hpp"
#include "sluice/attention.hpp"

namespace sluice::cli {
namespace {

struct AttentionFlags {
  std::vector<std::string> files;  // Q, K and V, or none: random numbers then
  std::string lengths, block_table, k_scales, v_scales, out, lse;
  std::string type, kv_layout = "tokens_first";
  std::int64_t batch = 1, query_len = 1, heads_q = 32, heads_kv = 8, head_size = 128, tokens = 0, max_kv_len = 0, window = 0;
  std::uint64_t data_seed = 0;
  double scale = 0, soft_cap = 0;
  bool bf16_as_uint16 = false, not_causal = false, constant_cache = false, check = false, explain = false;
  PlaceFlags place;
};

Error wrong(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }

struct Inputs {
  AttentionProblem problem;  // validated
  std::vector<std::byte> q, k, v;
  std::vector<std::int32_t> lengths, block_table;
  std::vector<float> k_scales, v_scales;
  std::vector<std::string> lines;
};

// Outputs are NaN at first: an element that nobody writes shows.
struct Outputs {
  std::vector<std::byte> o;
  std::vector<float> lse;
  explicit Outputs(const AttentionProblem& p)
      : o(static_cast<std::size_t>(p.batch * p.query_len * p.heads_q * p.head_size * size_bytes(p.type)), std::byte{0xff}),
        lse(static_cast<std::size_t>(p.batch * p.query_len * p.heads_q), std::nanf("")) {}
};

AttentionArguments arguments_of(const Inputs& in, Outputs& out) {
  const auto given = [](const auto& values) { return values.empty() ? nullptr : values.data(); };
  return {.q = in.q.data(),
          .k = in.k.data(),
          .v = in.v.data(),
          .o = out.o.data(),
          .lse = out.lse.data(),
          .lengths = given(in.lengths),
          .block_table = given(in.block_table),
          .block_table_stride = in.problem.batch == 0 ? 0 : static_cast<std::int64_t>(in.block_table.size()) / in.problem.batch,
          .k_scales = given(in.k_scales),
          .v_scales = given(in.v_scales)};
}

Result<NpyArray> read_four(const std::string& path, const char* axes, bool bf16_as_uint16) {
  Result<NpyArray> array = read_npy(path, bf16_as_uint16);
  if (!array) return array;
  if (array->shape.size() != 4) return wrong(fmt::format("{} is {}; it must be [{}]", path, shape_text(array->shape), axes));
  if (array->fortran_order) return wrong(path + " is in Fortran order; save numpy.ascontiguousarray(array)");
  return array;
}

Status add(const char* name, const std::string& path, NpyArray array, DataType type, std::vector<std::byte>& to, Inputs& inputs) {
  if (array.type == NpyType::bytes && type != DataType::e4m3) return wrong(path + ": holds bytes; only K and V may be of 8 bits");
  inputs.lines.push_back(fmt::format("{:<4} {}: {} {}", name, path.empty() ? "random" : path, shape_text(array.shape), to_string(type)));
  std::int64_t too_large = 0;
  to = array.type == NpyType::bytes ? std::move(array.data) : convert(std::move(array.data), array.type, type, too_large);
  if (too_large == 0) return Nothing{};
  return wrong(fmt::format("{} too large for {}", elements_are(too_large, name), sluice::to_string(type)));
}

// All of a file's numbers, in whatever shape; without a file none.
template <class T>
Status read_numbers(const std::string& path, HistogramSample type, const std::string& refusal, std::vector<T>& to) {
  if (path.empty()) return Nothing{};
  const Result<NpySamples> numbers = read_npy_samples(path);
  if (!numbers) return numbers.error();
  if (numbers->type != type) return wrong(refusal);
  const auto* const first = reinterpret_cast<const T*>(numbers->data.data());
  to.assign(first, first + numbers->count);
  return Nothing{};
}
Status read_integers(const std::string& path, std::vector<std::int32_t>& to) {
  return read_numbers(path, HistogramSample::int32, path + ": must be int32", to);
}
Status read_factors(const char* flag, const std::string& path, std::int64_t heads, std::vector<float>& to) {
  const std::string refusal = fmt::format("{} {}: must have {} float32 numbers, one for each key head", flag, path, heads);
  if (Status s = read_numbers(path, HistogramSample::float32, refusal, to); !s) return s;
  if (!path.empty() && static_cast<std::int64_t>(to.size()) != heads) return wrong(refusal);
  return Nothing{};
}

NpyArray random_four(const std::vector<std::int64_t>& shape, std::uint64_t seed) {
  Matrices matrix = random_matrices(0, shape[0] * shape[1] * shape[2], shape[3], Layout::row_major, seed);
  return {.type = matrix.type, .fortran_order = false, .shape = shape, .data = std::move(matrix.data)};
}

struct Arrays {
  NpyArray q, k, v;
};

Result<Arrays> read_or_draw(const AttentionFlags& flags) {
  if (flags.files.empty()) {
    constexpr double kMostElements = 1e10;
    if (flags.tokens <= 0) return wrong("there is nothing to attend to; pass Q.npy K.npy V.npy, or --tokens for random numbers");
    for (const std::int64_t extent : {flags.batch, flags.query_len, flags.heads_q, flags.heads_kv, flags.head_size})
      if (extent <= 0) return wrong("random numbers need --batch, --query-len, --heads, --key-heads and --head-size above 0");
    if (static_cast<double>(flags.batch * flags.heads_kv) * static_cast<double>(flags.tokens) * static_cast<double>(flags.head_size) >
        kMostElements)
      return wrong("the flags make more than 1e10 random numbers; pass smaller ones");
    const bool tokens_first = flags.kv_layout == "tokens_first";
    const std::vector<std::int64_t> kv = {flags.batch, tokens_first ? flags.tokens : flags.heads_kv,
                                          tokens_first ? flags.heads_kv : flags.tokens, flags.head_size};
    return Arrays{random_four({flags.batch, flags.query_len, flags.heads_q, flags.head_size}, 3 * flags.data_seed),
                  random_four(kv, 3 * flags.data_seed + 1), random_four(kv, 3 * flags.data_seed + 2)};
  }
  if (flags.files.size() != 3) return wrong("pass all of Q.npy, K.npy and V.npy, or none for random numbers");
  if (flags.tokens != 0) return wrong("--tokens is for random numbers; leave it out, the files say");
  Result<NpyArray> q = read_four(flags.files[0], "batch, new tokens, heads, head size", flags.bf16_as_uint16);
  if (!q) return q.error();
  Result<NpyArray> k = read_four(flags.files[1], "batch or pages, tokens, key heads, head size", flags.bf16_as_uint16);
  if (!k) return k.error();
  Result<NpyArray> v = read_four(flags.files[2], "batch or pages, tokens, key heads, head size", flags.bf16_as_uint16);
  if (!v) return v.error();
  if (k->shape != v->shape || (k->type == NpyType::bytes) != (v->type == NpyType::bytes))
    return wrong(fmt::format("K is {} {} and V is {} {}; they must be alike", shape_text(k->shape), to_string(k->type),
                             shape_text(v->shape), to_string(v->type)));
  return Arrays{std::move(*q), std::move(*k), std::move(*v)};
}

Result<AttentionProblem> problem_of(const AttentionFlags& flags, const Arrays& a) {
  const bool fp16 = a.q.type == NpyType::fp16, paged = !flags.block_table.empty();
  AttentionProblem p{.batch = a.q.shape[0],
                     .query_len = a.q.shape[1],
                     .heads_q = a.q.shape[2],
                     .head_size = a.q.shape[3],
                     .type = fp16 ? DataType::fp16 : DataType::bf16,
                     .scale = flags.scale,
                     .soft_cap = flags.soft_cap,
                     .window = flags.window,
                     .causal = !flags.not_causal,
                     .lse = true,
                     .constant_cache = flags.constant_cache};
  if (Status s = choose_into(p.type, "--type", flags.type, &parse_data_type, "bf16, fp16"); !s) return s.error();
  if (Status s = choose_into(p.kv_layout, "--kv-layout", flags.kv_layout, &parse_kv_layout, "tokens_first, heads_first"); !s)
    return s.error();
  const bool tokens_first = p.kv_layout == KvLayout::tokens_first;
  const std::int64_t tokens = a.k.shape[tokens_first ? 1 : 2];
  p.kv_type = a.k.type == NpyType::bytes ? DataType::e4m3 : p.type;
  p.heads_kv = a.k.shape[tokens_first ? 2 : 1];
  p.max_kv_len = paged ? flags.max_kv_len : tokens;
  if (paged) p.page_size = tokens, p.pages = a.k.shape[0];
  if (!paged && flags.max_kv_len != 0) return wrong("--max-kv-len is for pages; without them K says it");
  if (a.k.shape[3] != p.head_size || (!paged && a.k.shape[0] != p.batch))
    return wrong(fmt::format("Q is {} and K is {}; they must have one head size, and one batch where there are no pages",
                             shape_text(a.q.shape), shape_text(a.k.shape)));
  return validate(p);
}

Result<Inputs> read_inputs(const AttentionFlags& flags) {
  Result<Arrays> arrays = read_or_draw(flags);
  if (!arrays) return arrays.error();
  const Result<AttentionProblem> problem = problem_of(flags, *arrays);
  if (!problem) return problem.error();
  Inputs in{.problem = *problem, .q = {}, .k = {}, .v = {}, .lengths = {}, .block_table = {}, .k_scales = {}, .v_scales = {}, .lines = {}};
  const AttentionProblem& p = in.problem;
  const auto path = [&flags](std::size_t i) { return flags.files.empty() ? std::string() : flags.files[i]; };
  if (Status s = add("Q", path(0), std::move(arrays->q), p.type, in.q, in); !s) return s.error();
  if (Status s = add("K", path(1), std::move(arrays->k), p.kv_type, in.k, in); !s) return s.error();
  if (Status s = add("V", path(2), std::move(arrays->v), p.kv_type, in.v, in); !s) return s.error();
  if (Status s = read_integers(flags.lengths, in.lengths); !s) return s.error();
  if (Status s = read_integers(flags.block_table, in.block_table); !s) return s.error();
  if (Status s = read_factors("--k-scales", flags.k_scales, p.heads_kv, in.k_scales); !s) return s.error();
  if (Status s = read_factors("--v-scales", flags.v_scales, p.heads_kv, in.v_scales); !s) return s.error();
  const auto batch = static_cast<std::size_t>(p.batch);
  if (!in.lengths.empty() && in.lengths.size() != batch)
    return wrong(fmt::format("--lengths {} has {} numbers; there are {} sequences", flags.lengths, in.lengths.size(), batch));
  for (const std::int32_t length : in.lengths)
    if (length < 0 || length > p.max_kv_len)
      return wrong(fmt::format("--lengths {} has a {}; there is room for 0 to {} tokens", flags.lengths, length, p.max_kv_len));
  if (batch > 0 && in.block_table.size() % batch != 0)
    return wrong(
        fmt::format("--block-table {} has {} numbers, no multiple of the {} sequences", flags.block_table, in.block_table.size(), batch));
  return in;
}

Status attend(const Inputs& in, Outputs& out, Backend backend, const WantedPlace& wanted) {
  const AttentionArguments arguments = arguments_of(in, out);
  switch (backend) {
    case Backend::cuda:
      return attention_on_gpu(in.problem, arguments, in.k.size());
    case Backend::emulator: {
      const Result<AttentionPlan> plan = plan_attention(in.problem, *find_device("h200"));
      if (!plan) return plan.error();
      return attention_on_emulator(*plan, arguments, wanted.emulator);
    }
    case Backend::reference:
      break;
  }
  return attention_on_cpu(in.problem, arguments, wanted.threads);
}

double element(const std::vector<std::byte>& values, std::size_t i, DataType type) {
  return load_element(values.data() + i * static_cast<std::size_t>(size_bytes(type)),
                      type == DataType::fp16 ? NpyType::fp16 : NpyType::bf16);
}

// Elements of O that are further from the reference than its rounding and that of the weights explain: each by the unit roundoff, of the
// result and of the greatest value.
Result<std::int64_t> count_differences(const Inputs& in, const Outputs& got) {
  const AttentionProblem& p = in.problem;
  Outputs expected(p);
  if (Status s = attention_on_cpu(p, arguments_of(in, expected)); !s) return s.error();
  double greatest = 0;
  if (p.kv_type == DataType::e4m3) {
    greatest = largest_fp8(DataType::e4m3) * *std::max_element(in.v_scales.begin(), in.v_scales.end());
  } else {
    for (std::size_t i = 0; i < in.v.size() / 2; ++i) {
      const double x = std::abs(element(in.v, i, p.type));
      if (std::isfinite(x)) greatest = std::max(greatest, x);
    }
  }
  const double roundoff = p.type == DataType::fp16 ? 0x1p-11 : 0x1p-8;
  std::int64_t different = 0;
  for (std::size_t i = 0; i < got.o.size() / 2; ++i) {
    const double is = element(got.o, i, p.type), should = element(expected.o, i, p.type);
    different += std::abs(is - should) <= 2 * roundoff * (std::abs(should) + greatest) ? 0 : 1;
  }
  for (std::size_t i = 0; i < got.lse.size(); ++i)
    different += got.lse[i] == expected.lse[i] || std::abs(got.lse[i] - expected.lse[i]) <= 1e-2f ? 0 : 1;
  return different;
}

Status write_outputs(const AttentionFlags& flags, const AttentionProblem& p, const Outputs& out) {
  if (!flags.out.empty())
    if (Status s = write_npy(flags.out, p.type, {p.batch, p.query_len, p.heads_q, p.head_size}, out.o); !s) return s;
  if (flags.lse.empty()) return Nothing{};
  return write_npy(flags.lse, DataType::fp32, {p.batch, p.query_len, p.heads_q}, std::as_bytes(std::span(out.lse)));
}

Outcome attend_files(const AttentionFlags& flags, const Session& session) {
  if (flags.out.empty() && !flags.check && !flags.explain) return wrong("the result has nowhere to go; pass -o O.npy, or --check");
  for (const std::string& path : {flags.out, flags.lse})
    if (Status s = check_folder_of(path); !s) return s.error();
  const Result<WantedPlace> wanted = read_place(flags.place);
  if (!wanted) return wanted.error();
  const Result<Inputs> inputs = read_inputs(flags);
  if (!inputs) return inputs.error();
  const AttentionProblem& p = inputs->problem;
  const Place place = choose_place(flags.place, *wanted, gpu_or_reference);

  Outputs outputs(p);
  const auto begin = std::chrono::steady_clock::now();
  if (Status s = attend(*inputs, outputs, place.backend, *wanted); !s) return s.error();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (Status s = write_outputs(flags, p, outputs); !s) return s.error();

  Json json = {{"problem", describe(p)}, {"inputs", inputs->lines}, {"backend", sluice::to_string(place.backend)},
               {"why", place.why},       {"where", place.text},     {"seconds", seconds}};
  std::vector<std::string> lines = inputs->lines;
  lines.push_back("O    " + describe(p));
  lines.push_back(fmt::format("ran  {} ({})", place.text, place.why));
  if (!flags.out.empty()) {
    lines.push_back("wrote " + flags.out);
    json["output"] = flags.out;
  }
  if (flags.explain) {
    const Result<AttentionPlan> plan = plan_attention(p, *find_device("h200"));
    if (!plan) return plan.error();
    lines.push_back("on an h200: " + explain(*plan));
    json["plan"] = {{"device", "h200"}, {"ctas", plan->ctas}, {"workspace_bytes", plan->workspace_bytes}, {"floor_us", plan->floor_us}};
  }
  int exit_code = 0;
  if (flags.check) {
    const Result<std::int64_t> different = count_differences(*inputs, outputs);
    if (!different) return different.error();
    json["different"] = *different;
    if (*different == 0) lines.push_back(fmt::format("{} elements checked: all within what rounding explains", outputs.o.size() / 2));
    if (*different != 0) {
      fmt::print(stderr, "sluice: the result is wrong: {} elements or logarithms differ from the reference\n", *different);
      exit_code = kExitFailure;
    }
  }
  print_answer(session, json, lines);
  return exit_code;
}

}  // namespace

void add_attention_command(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<AttentionFlags>();
  CLI::App* command = add_command<AttentionFlags>(app, session, "attention", "Attend from a few new tokens to caches of keys and values",
                                                  flags, &attend_files);
  command->add_option("FILES", flags->files,
                      "Q [batch, new tokens, heads, head size], K and V [batch or pages, tokens, key heads, head size]");
  command->add_option("--batch", flags->batch, "Without files: sequences")->capture_default_str();
  command->add_option("--query-len", flags->query_len, "Without files: new tokens of each")->capture_default_str();
  command->add_option("--heads", flags->heads_q, "Without files: heads of the queries")->capture_default_str();
  command->add_option("--key-heads", flags->heads_kv, "Without files: heads of keys and values")->capture_default_str();
  command->add_option("--head-size", flags->head_size, "Without files: 64, 128 or 256")->capture_default_str();
  command->add_option("--tokens", flags->tokens, "Without files: keys and values of each sequence");
  command->add_option("--data-seed", flags->data_seed, "Without files: draws the numbers (default: 0)");
  command->add_option("--lengths", flags->lengths, "int32 [batch]: tokens of each sequence, the new ones included (default: all)");
  command->add_option("--block-table", flags->block_table, "int32 [batch, pages]: K and V are pages then");
  command->add_option("--max-kv-len", flags->max_kv_len, "With pages: tokens that a sequence may have");
  command->add_option("--k-scales", flags->k_scales, "float32 [key heads]: factors of K of e4m3 (files of bytes)");
  command->add_option("--v-scales", flags->v_scales, "float32 [key heads]: factors of V of e4m3");
  command->add_option("--kv-layout", flags->kv_layout, "tokens_first, or heads_first: [batch or pages, key heads, tokens, head size]")
      ->capture_default_str();
  command->add_option("--scale", flags->scale, "Of the scores (default: 1/sqrt(head size))");
  command->add_option("--soft-cap", flags->soft_cap, "Scores become cap tanh(score / cap)");
  command->add_option("--window", flags->window, "Tokens that each sees, itself among them (default: all)");
  command->add_flag("--not-causal", flags->not_causal, "New tokens see those behind them, too");
  command->add_flag("--constant-cache", flags->constant_cache,
                    "Lengths, pages and all but the new tokens may be read before the kernel before has ended");
  command->add_flag("--bf16-as-uint16", flags->bf16_as_uint16, "Files of uint16 hold the bits of bf16 numbers");
  command->add_option("--type", flags->type, "Of Q, K, V and O: bf16 or fp16 (default: fp16 for files of it, else bf16)");
  command->add_option("-o,--output", flags->out, "Where O goes, as Q");
  command->add_option("--lse", flags->lse, "Where the logarithms of the sums of exponentials go, float32 [batch, new tokens, heads]");
  command->add_flag("--check,--verify", flags->check, "Compare with what the reference makes of it");
  command->add_flag("--explain", flags->explain, "Say how an H200 would do it");
  add_place_flags(*command, flags->place);
}

}  // namespace sluice::cli
