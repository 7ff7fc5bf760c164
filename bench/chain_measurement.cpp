#include "bench/chain_measurement.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "bench/device_random.hpp"
#include "bench/sizing.hpp"
#include "sluice/plan.hpp"
#include "sluice/run.hpp"

namespace sluice::bench {
namespace {

constexpr std::int64_t kSamples = 4096;
constexpr std::uint64_t kInputSeed = 1;  // the weights' follow

std::int64_t most(const std::vector<std::int64_t>& rows) { return *std::max_element(rows.begin(), rows.end()); }

bool wants(const BenchOptions& options, const std::string& rival) {
  return std::find(options.rivals.begin(), options.rivals.end(), rival) != options.rivals.end();
}

std::string describe(const Plan& plan) {
  const SchedulerParams& s = plan.scheduler;
  return fmt::format("{}, {}{}", name(plan.kernel), to_string(s.kind),
                     s.kind == SchedulerKind::split_k ? fmt::format(" {}", s.splits) : std::string());
}

}  // namespace

struct ChainMeasurement::Products {
  std::int64_t rows;
  ChainLayout layout;
  std::vector<std::unique_ptr<CublasLtMatmul>> cublaslt;                  // empty without the library
  std::vector<std::vector<cublasLtMatmulAlgo_t>> algorithms, references;  // references sum in fp32
};

ChainMeasurement::ChainMeasurement(const BenchOptions& options, ChainModel model, const DeviceSpec& device,
                                   std::shared_ptr<const CublasLt> cublaslt)
    : options_(options), model_(std::move(model)), device_(device), cublaslt_(std::move(cublaslt)), check_(stream_) {
  const ChainLayout layout(model_, most(options_.chain_rows), options_.chain_blocks);
  check_memory(layout.total_bytes);
  const auto blocks = static_cast<std::size_t>(options_.chain_blocks);
  weights_ = DeviceBuffer(blocks * layout.block_weight_bytes);
  input_ = DeviceBuffer(layout.output_bytes);
  expected_ = DeviceBuffer(layout.output_bytes);
  outputs_ = DeviceBuffer(blocks * layout.block_activation_bytes);
  if (cublaslt_) cublaslt_workspace_ = DeviceBuffer(CublasLtMatmul::kWorkspaceBytes);

  std::uint64_t seed = kInputSeed;
  const auto input = static_cast<std::int64_t>(layout.output_bytes / 2);
  fill_random(input_.data(), DataType::bf16, {.length = input, .pitch = input}, Distribution::normal, seed, stream_);
  for (std::size_t block = 0; block < blocks; ++block)
    for (std::size_t l = 0; l < model_.layers.size(); ++l) {
      const std::int64_t elements = model_.layers[l].n * model_.layers[l].k;
      // Each output is then of variance 1 as its input is, through any number of layers.
      const float scale = 1 / std::sqrt(static_cast<float>(model_.layers[l].k));
      fill_random(weights_.data() + block * layout.block_weight_bytes + layout.weights[l], DataType::bf16,
                  {.length = elements, .pitch = elements}, Distribution::normal, ++seed, stream_, scale);
    }
  // Weights that are declared constant may be fetched before the kernel ahead has ended: it must not be the one that makes them.
  stream_.synchronize("making the weights of " + model_.name);
}

void ChainMeasurement::check_memory(std::size_t needed) const {
  std::size_t free_bytes = 0, total_bytes = 0;
  check(cudaMemGetInfo(&free_bytes, &total_bytes), "asking for free device memory");
  const std::size_t usable = free_bytes / 10 * 9;  // the rest is for workspaces and the driver
  if (needed <= usable) return;
  throw DeviceFailure(
      fmt::format("{} blocks of {} with {} rows need {} MB of device memory, and {} MB may be used; take fewer blocks "
                  "(--chain-blocks) or rows (--chain-rows)",
                  options_.chain_blocks, model_.name, most(options_.chain_rows), needed >> 20, usable >> 20));
}

OperandSet ChainMeasurement::operands(const Products& products, int block, std::size_t layer) const {
  const ChainLayout& layout = products.layout;
  const auto output = [&](int of_block, std::size_t of_layer) {
    return outputs_.data() + static_cast<std::size_t>(of_block) * layout.block_activation_bytes + layout.activations[of_layer];
  };
  OperandSet set;
  if (layer > 0)
    set.a = output(block, layer - 1);
  else
    set.a = block > 0 ? output(block - 1, model_.layers.size() - 1) : input_.data();
  set.b = weights_.data() + static_cast<std::size_t>(block) * layout.block_weight_bytes + layout.weights[layer];
  set.d = output(block, layer);
  return set;
}

Result<ChainMeasurement::Contestant> ChainMeasurement::sluice_chain(const Products& products, const std::string& name, bool constant_b) {
  Contestant contestant{.timing = {.name = name}};
  std::size_t workspace_bytes = 0;
  for (std::size_t l = 0; l < model_.layers.size(); ++l) {
    Result<Plan> made = plan(chain_problem(model_, l, products.rows, constant_b), device_, options_.plan_options);
    if (!made) return made.error();
    made->candidates.clear();
    workspace_bytes = std::max(workspace_bytes, made->workspace_bytes);
    contestant.timing.layers.push_back(describe(*made));
    contestant.steps.emplace_back(
        [this, layer = std::make_shared<const Plan>(std::move(*made))](const OperandSet& set, cudaStream_t stream) {
          const Status status = run(*layer, {.a = set.a, .b = set.b, .d = set.d}, workspace_.data(), workspace_.size_bytes(), stream);
          if (!status) throw DeviceFailure(status.error().message);
        });
  }
  if (workspace_bytes > workspace_.size_bytes()) {
    workspace_ = DeviceBuffer(workspace_bytes);
    if (Status s = prepare_workspace(workspace_.data(), workspace_bytes, stream_); !s) return s.error();
  }
  return contestant;
}

ChainMeasurement::Contestant ChainMeasurement::cublaslt_chain(const Products& products, const std::string& name, bool best) {
  Contestant contestant{.timing = {.name = name}};
  for (std::size_t l = 0; l < model_.layers.size(); ++l) {
    const CublasLtMatmul* const matmul = products.cublaslt[l].get();
    const auto step = [this, matmul](const cublasLtMatmulAlgo_t& algorithm) -> Step {
      return [this, matmul, algorithm](const OperandSet& set, cudaStream_t stream) {
        matmul->enqueue(algorithm, set, cublaslt_workspace_.data(), stream);
      };
    };
    std::size_t chosen = 0;
    if (best) {
      // The same layer of one block after another: its weights come from memory, as they do in the chain.
      std::vector<Enqueue> ways;
      for (const cublasLtMatmulAlgo_t& algorithm : products.algorithms[l])
        ways.emplace_back(
            [this, &products, l, one = step(algorithm)](int block, cudaStream_t stream) { one(operands(products, block, l), stream); });
      chosen = fastest(ways, options_.chain_blocks, stream_);
    }
    contestant.timing.layers.push_back(matmul->describe(products.algorithms[l][chosen]));
    contestant.steps.push_back(step(products.algorithms[l][chosen]));
  }
  return contestant;
}

Graph ChainMeasurement::graph_of(const Products& products, const Contestant& contestant) const {
  return Graph(stream_, [&] {
    for (int block = 0; block < options_.chain_blocks; ++block)
      for (std::size_t l = 0; l < model_.layers.size(); ++l) contestant.steps[l](operands(products, block, l), stream_);
  });
}

// The whole chain runs once, as it will be timed. Every layer's output is then compared with what cuBLASLt makes of the very input that
// the layer had, the output of the layer before, so that errors do not add up; and in part with the reference in double precision. The
// bounds are those of Measurement::verify(), for products of variance 1 / k.
std::string ChainMeasurement::verify(const Products& products, const Contestant& contestant) {
  const Graph graph = graph_of(products, contestant);
  check(cudaMemsetAsync(outputs_.data(), kPoisonByte, outputs_.size_bytes(), stream_), "poisoning the outputs");
  graph.launch(stream_);
  stream_.synchronize(fmt::format("waiting for {}'s chain", contestant.timing.name));

  for (int block = 0; block < options_.chain_blocks; ++block)
    for (std::size_t l = 0; l < model_.layers.size(); ++l) {
      OperandSet set = operands(products, block, l);
      const Shape shape = chain_shape(model_, l, products.rows);
      const Result<GemmProblem> problem = validate(chain_problem(model_, l, products.rows, false));
      if (!problem) return problem.error().message;
      check_.reset();
      check_.against_reference(*problem, {.a = set.a, .b = set.b, .d = set.d}, nullptr, Exactness::bounded, kSamples);
      if (cublaslt_) {
        const void* const got = std::exchange(set.d, expected_.data());
        check(cudaMemsetAsync(expected_.data(), kPoisonByte, products.layout.output_bytes, stream_), "poisoning the reference");
        products.cublaslt[l]->enqueue(products.references[l].front(), set, cublaslt_workspace_.data(), stream_);
        check_.against_result(got, expected_.data(), shape.m, shape.n, 0x1p-7f, 0x1p-7f);
      }
      if (const CheckReport report = check_.fetch(); !report.ok())
        return fmt::format("block {}, {}, {}: {}", block, model_.layers[l].name, to_string(shape), to_string(report));
    }
  return "";
}

void ChainMeasurement::time_all(const Products& products, std::vector<Contestant>& contestants) {
  constexpr int kFirstRounds = 3;  // they warm up, and say how long a round takes
  std::vector<Graph> graphs;
  graphs.reserve(contestants.size());
  for (const Contestant& contestant : contestants) graphs.push_back(graph_of(products, contestant));
  double round_us = 0;
  for (const Timing& first : time_in_turns(pointers(graphs), 1, kFirstRounds, stream_)) round_us += first.us;
  const int rounds = rounds_within(kTimedShare * options_.seconds_per_shape, round_us, options_.rounds);
  const std::vector<Timing> timings = time_in_turns(pointers(graphs), options_.chain_blocks, rounds, stream_);
  for (std::size_t i = 0; i < contestants.size(); ++i) contestants[i].timing.timing = timings[i];
}

ChainResult ChainMeasurement::measure(std::int64_t rows) {
  ChainResult result{
      .model = model_.name, .rows = rows, .blocks = options_.chain_blocks, .floor_us = chain_floor_us(model_, device_.hbm_gb_per_s)};
  Products products{
      .rows = rows, .layout = ChainLayout(model_, rows, options_.chain_blocks), .cublaslt = {}, .algorithms = {}, .references = {}};
  for (std::size_t l = 0; cublaslt_ && l < model_.layers.size(); ++l) {
    products.cublaslt.push_back(std::make_unique<CublasLtMatmul>(cublaslt_, validate(chain_problem(model_, l, rows, false)).value()));
    products.algorithms.push_back(products.cublaslt.back()->heuristics(CublasLtMatmul::kAnswers));
    products.references.push_back(products.cublaslt.back()->heuristics(1, CublasLtReduction::in_fp32));
  }

  std::vector<Contestant> contestants;
  for (const auto& [name, constant_b] : {std::pair{"sluice-constant", true}, std::pair{"sluice", false}}) {
    Result<Contestant> made = sluice_chain(products, name, constant_b);
    if (!made) {
      result.wrong = made.error().message;
      return result;
    }
    made->timing.wrong = verify(products, *made);
    contestants.push_back(std::move(*made));
  }
  // The outputs are now those of a chain: the rivals are chosen on numbers as they will be timed on.
  if (cublaslt_ && wants(options_, "cublaslt")) contestants.push_back(cublaslt_chain(products, "cublaslt", false));
  if (cublaslt_ && wants(options_, "cublaslt-best")) contestants.push_back(cublaslt_chain(products, "cublaslt-best", true));
  time_all(products, contestants);
  for (Contestant& contestant : contestants) result.contestants.push_back(std::move(contestant.timing));
  return result;
}

}  // namespace sluice::bench
