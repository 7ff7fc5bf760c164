#include "bench/chain.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace sluice::bench {
namespace {

ChainModel model(const std::string& name) {
  Result<std::vector<ChainModel>> found = find_chains(name);
  EXPECT_TRUE(found.ok()) << found.error().message;
  return found ? found->front() : ChainModel{};
}

ChainResult timed(double constant_us, double plain_us, double first_us, double best_us) {
  const auto one = [](const char* name, double us) {
    return ChainTiming{.name = name, .layers = {"a"}, .timing = {.us = us, .rounds = 7}};
  };
  return {.model = "llama3-8b",
          .rows = 16,
          .blocks = 8,
          .floor_us = 90,
          .contestants = {one("sluice-constant", constant_us), one("sluice", plain_us), one("cublaslt", first_us),
                          one("cublaslt-best", best_us)}};
}

TEST(Chains, AreTheLinearLayersOfTheModels) {
  EXPECT_EQ(find_chains("all")->size(), 2u);
  std::int64_t elements = 0;
  for (const ChainLayer& layer : model("llama3-8b").layers) elements += layer.n * layer.k;
  EXPECT_EQ(elements * 32, 6979321856) << "all but embeddings, output layer and norms of the 8.03 billion parameters";
  elements = 0;
  for (const ChainLayer& layer : model("llama3-70b").layers) elements += layer.n * layer.k;
  EXPECT_EQ(elements * 80, 68451041280) << "of the 70.6 billion";
  const Result<std::vector<ChainModel>> unknown = find_chains("gpt");
  ASSERT_FALSE(unknown.ok());
  EXPECT_NE(unknown.error().message.find("llama3-70b"), std::string::npos);
}

// Each layer finds its input in what the layer before wrote, and the first of a block in what the last wrote.
TEST(Chains, EachLayerReadsTheOneBefore) {
  const std::vector<ChainModel> chains = *find_chains("all");
  for (const ChainModel& chain : chains) {
    for (std::size_t l = 0; l < chain.layers.size(); ++l) {
      const std::size_t before = (l + chain.layers.size() - 1) % chain.layers.size();
      EXPECT_EQ(chain_lda(chain, l), chain.layers[before].n) << chain.layers[l].name;
      EXPECT_LE(chain.layers[l].k, chain.layers[before].n) << chain.layers[l].name;
      const Result<GemmProblem> problem = validate(chain_problem(chain, l, 64, true));
      ASSERT_TRUE(problem.ok()) << problem.error().message;
      EXPECT_TRUE(problem->constant_b);
      EXPECT_FALSE(problem->constant_a) << "it is written by the launch before";
      EXPECT_EQ(problem->lda, chain.layers[before].n);
      EXPECT_EQ(problem->ldd, chain.layers[l].n);
    }
  }
  EXPECT_EQ(chain_lda(model("llama3-8b"), 1), 6144);
  EXPECT_EQ(chain_lda(model("llama3-8b"), 3), 28672);
}

TEST(Chains, NothingOverlapsInMemory) {
  const ChainModel chain = model("llama3-70b");
  for (const std::int64_t rows : {1, 5, 64}) {
    const ChainLayout layout(chain, rows, 8);
    std::size_t weights = 0, outputs = 0;
    for (std::size_t l = 0; l < chain.layers.size(); ++l) {
      EXPECT_GE(layout.weights[l], weights);
      EXPECT_GE(layout.activations[l], outputs);
      EXPECT_EQ(layout.weights[l] % 1024 + layout.activations[l] % 1024, 0u);
      weights = layout.weights[l] + static_cast<std::size_t>(chain.layers[l].n * chain.layers[l].k) * 2;
      outputs = layout.activations[l] + static_cast<std::size_t>(rows * chain.layers[l].n) * 2;
      EXPECT_GE(layout.output_bytes, static_cast<std::size_t>(rows * chain.layers[l].n) * 2);
    }
    EXPECT_GE(layout.block_weight_bytes, weights);
    EXPECT_GE(layout.block_activation_bytes, outputs);
    EXPECT_EQ(layout.total_bytes, 8 * (layout.block_weight_bytes + layout.block_activation_bytes) + 2 * layout.output_bytes);
  }
  EXPECT_EQ(ChainLayout(chain, 1, 8).block_weight_bytes * 8, 13690208256u);
}

TEST(Chains, TheFloorIsTheWeights) {
  EXPECT_NEAR(chain_floor_us(model("llama3-8b"), 4650), 2 * 218103808 / 4.65e6, 1e-9);
  EXPECT_NEAR(chain_floor_us(model("llama3-70b"), 4650), 368.02, 0.01);
}

TEST(Chains, OptionsThatMakeNoChain) {
  BenchOptions options;
  options.chain = "all";
  EXPECT_TRUE(check_chain_options(options).ok());
  options.chain_rows = {};
  EXPECT_FALSE(check_chain_options(options).ok());
  options.chain_rows = {1, 8193};
  EXPECT_NE(check_chain_options(options).error().message.find("chain_rows = 8193"), std::string::npos);
  options.chain_rows = {1};
  options.chain_blocks = 0;
  EXPECT_NE(check_chain_options(options).error().message.find("chain_blocks = 0"), std::string::npos);
}

TEST(ChainReport, RatiosAreAboveOneWhereSluiceIsFaster) {
  const ChainResult result = timed(100, 110, 125, 120);
  EXPECT_DOUBLE_EQ(chain_ratio(result, "cublaslt-best", "sluice-constant"), 1.2);
  EXPECT_EQ(chain_ratio(result, "mkl", "sluice"), 0);
  const std::string row = table_row(result);
  for (const char* piece : {"llama3-8b", "16", "100.00", "110.00", "125.00", "120.00", "1.200", "90.0%"})
    EXPECT_NE(row.find(piece), std::string::npos) << piece << " is not in " << row;
  EXPECT_EQ(table_header(ChainReport{}).find("ratio") + 5, row.find("1.200") + 5);
  const nlohmann::json json = nlohmann::json::parse(to_json(ChainReport{.environment = {.gpu = "a GPU"}, .results = {result}}));
  EXPECT_EQ(json["environment"]["gpu"], "a GPU");
  EXPECT_EQ(json["results"][0]["contestants"]["sluice"]["us_per_block"], 110);
  EXPECT_NEAR(json["results"][0]["ratios"]["cublaslt/sluice"].get<double>(), 125.0 / 110, 1e-12);
  EXPECT_EQ(json["results"][0]["correct"], true);
}

TEST(ChainReport, WithoutRivalsThereIsNoRatio) {
  ChainResult result = timed(100, 110, 0, 0);
  result.contestants.resize(2);
  EXPECT_EQ(table_row(result).find("0.00 "), table_row(result).find("100.00") + 2) << "a time that is not there is no 0.00";
  const nlohmann::json json = nlohmann::json::parse(to_json(ChainReport{.environment = {}, .results = {result}}));
  EXPECT_TRUE(json["results"][0]["ratios"].empty());
}

TEST(ChainReport, SaysLoudlyWhatIsWrong) {
  ChainResult result = timed(100, 110, 125, 120);
  result.contestants[1].wrong = "block 3, down: 5 of 4096 elements wrong";
  const ChainReport report{.environment = {}, .results = {timed(1, 1, 1, 1), result}};
  EXPECT_TRUE(any_wrong(report));
  EXPECT_FALSE(any_wrong({.environment = {}, .results = {timed(1, 1, 1, 1)}}));
  EXPECT_NE(table_row(result).find("WRONG: llama3-8b, 16 rows: sluice: block 3"), std::string::npos);
  EXPECT_NE(table_footer(report).find("WRONG RESULTS"), std::string::npos);
  const nlohmann::json json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["results"][0]["correct"], true);
  EXPECT_EQ(json["results"][1]["correct"], false);
  EXPECT_EQ(json["results"][1]["contestants"]["sluice"]["correct"], false);
}

}  // namespace
}  // namespace sluice::bench
