#include "bench/chain.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "bench/report_json.hpp"
#include "bench/sizing.hpp"

namespace sluice::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kMostRows = 8192;
constexpr int kMostBlocks = 128;

const std::vector<ChainModel>& models() {
  static const std::vector<ChainModel> all = {
      {"llama3-8b", {{"qkv", 6144, 4096}, {"attention-output", 4096, 4096}, {"gate-and-up", 28672, 4096}, {"down", 4096, 14336}}},
      {"llama3-70b", {{"qkv", 10240, 8192}, {"attention-output", 8192, 8192}, {"gate-and-up", 57344, 8192}, {"down", 8192, 28672}}}};
  return all;
}

std::size_t padded_bytes(std::int64_t elements) { return padded(static_cast<std::size_t>(elements) * 2); }

const ChainTiming* find(const ChainResult& result, const std::string& name) {
  const auto found =
      std::find_if(result.contestants.begin(), result.contestants.end(), [&](const ChainTiming& timing) { return timing.name == name; });
  return found == result.contestants.end() ? nullptr : &*found;
}

// The columns of the table: in this order, whoever takes part.
constexpr const char* kContestants[] = {"sluice-constant", "sluice", "cublaslt", "cublaslt-best"};
constexpr int kTimeWidth = 15;

}  // namespace

Result<std::vector<ChainModel>> find_chains(const std::string& wanted) {
  if (wanted == "all") return models();
  for (const ChainModel& model : models())
    if (model.name == wanted) return std::vector<ChainModel>{model};
  return Error{ErrorCode::not_found, "no chain is called '" + wanted + "'; known are llama3-8b, llama3-70b, all"};
}

Status check_chain_options(const BenchOptions& options) {
  if (Result<std::vector<ChainModel>> found = find_chains(options.chain); !found) return found.error();
  if (options.chain_rows.empty()) return Error{ErrorCode::invalid_argument, "a chain needs rows; pass some, such as 1,16,64"};
  for (const std::int64_t rows : options.chain_rows)
    if (rows < 1 || rows > kMostRows)
      return Error{ErrorCode::invalid_argument, fmt::format("chain_rows = {} must be from 1 to {}", rows, kMostRows)};
  if (options.chain_blocks < 1 || options.chain_blocks > kMostBlocks)
    return Error{ErrorCode::invalid_argument, fmt::format("chain_blocks = {} must be from 1 to {}", options.chain_blocks, kMostBlocks)};
  return Nothing{};
}

std::int64_t chain_lda(const ChainModel& model, std::size_t layer) {
  return (layer == 0 ? model.layers.back() : model.layers[layer - 1]).n;
}

Shape chain_shape(const ChainModel& model, std::size_t layer, std::int64_t rows) {
  return {model.name, rows, model.layers[layer].n, model.layers[layer].k};
}

GemmProblem chain_problem(const ChainModel& model, std::size_t layer, std::int64_t rows, bool constant_b) {
  const ChainLayer& one = model.layers[layer];
  return {.m = rows, .n = one.n, .k = one.k, .lda = chain_lda(model, layer), .constant_b = constant_b};
}

ChainLayout::ChainLayout(const ChainModel& model, std::int64_t rows, int blocks) {
  for (const ChainLayer& layer : model.layers) {
    weights.push_back(block_weight_bytes);
    activations.push_back(block_activation_bytes);
    block_weight_bytes += padded_bytes(layer.n * layer.k);
    block_activation_bytes += padded_bytes(rows * layer.n);
    output_bytes = std::max(output_bytes, padded_bytes(rows * layer.n));
  }
  total_bytes = static_cast<std::size_t>(blocks) * (block_weight_bytes + block_activation_bytes) + 2 * output_bytes;
}

double chain_floor_us(const ChainModel& model, double hbm_gb_per_s) {
  double bytes = 0;
  for (const ChainLayer& layer : model.layers) bytes += 2.0 * static_cast<double>(layer.n) * static_cast<double>(layer.k);
  return bytes / hbm_gb_per_s * 1e-3;
}

double chain_ratio(const ChainResult& result, const std::string& rival, const std::string& contestant) {
  const ChainTiming *above = find(result, rival), *below = find(result, contestant);
  return above != nullptr && below != nullptr && above->timing.us > 0 && below->timing.us > 0 ? above->timing.us / below->timing.us : 0;
}

bool any_wrong(const ChainReport& report) {
  return std::any_of(report.results.begin(), report.results.end(), [](const ChainResult& result) {
    return !result.wrong.empty() ||
           std::any_of(result.contestants.begin(), result.contestants.end(), [](const ChainTiming& t) { return !t.wrong.empty(); });
  });
}

std::string table_header(const ChainReport&) {
  std::string line = fmt::format("{:<11} {:>5}", "model", "rows");
  for (const char* name : kContestants) line += fmt::format(" {:>{}}", name, kTimeWidth);
  return line + fmt::format(" {:>8} {:>8} {:>9}\n", "ratio", "floor us", "of floor");
}

std::string table_row(const ChainResult& result) {
  std::string line = fmt::format("{:<11} {:>5}", result.model, result.rows);
  for (const char* name : kContestants) {
    const ChainTiming* const one = find(result, name);
    line += fmt::format(" {:>{}}", one != nullptr && one->timing.us > 0 ? fmt::format("{:.2f}", one->timing.us) : "-", kTimeWidth);
  }
  const double ratio = chain_ratio(result, "cublaslt-best", "sluice-constant");
  const ChainTiming* const sluice = find(result, "sluice-constant");
  const bool timed = sluice != nullptr && sluice->timing.us > 0;
  line += fmt::format(" {:>8} {:>8.2f} {:>9}\n", ratio > 0 ? fmt::format("{:.3f}", ratio) : "-", result.floor_us,
                      timed ? fmt::format("{:.1f}%", 100 * result.floor_us / sluice->timing.us) : "-");
  const std::string where = fmt::format("{}, {} rows", result.model, result.rows);
  if (!result.wrong.empty()) line += fmt::format("  WRONG: {}: {}\n", where, result.wrong);
  for (const ChainTiming& one : result.contestants)
    if (!one.wrong.empty()) line += fmt::format("  WRONG: {}: {}: {}\n", where, one.name, one.wrong);
  return line;
}

std::string table_footer(const ChainReport& report) {
  const Environment& e = report.environment;
  std::string text = any_wrong(report) ? "\n*** WRONG RESULTS: see the lines marked WRONG ***\n" : "";
  text += "\nmicroseconds for one block; ratio: cublaslt-best / sluice-constant; floor: the weights at the rate of the device's memory\n";
  return text + fmt::format("{}, driver {}, CUDA {}, cuBLASLt {}, Sluice {} ({}), {}\n", e.gpu, e.driver, e.cuda, e.cublaslt, e.sluice,
                            e.commit, e.date);
}

std::string to_json(const ChainReport& report) {
  Json json = {{"environment", to_json(report.environment)},
               {"ratio", "rival's time over Sluice's: above 1, Sluice is faster"},
               {"results", Json::array()}};
  for (const ChainResult& result : report.results) {
    Json one = {
        {"chain", result.model},           {"rows", result.rows},           {"blocks", result.blocks}, {"floor_us", result.floor_us},
        {"correct", result.wrong.empty()}, {"contestants", Json::object()}, {"ratios", Json::object()}};
    if (!result.wrong.empty()) one["wrong"] = result.wrong;
    for (const ChainTiming& timing : result.contestants) {
      Json& entry = one["contestants"][timing.name];
      entry = {{"us_per_block", timing.timing.us},
               {"relative_spread", timing.timing.spread},
               {"rounds", timing.timing.rounds},
               {"correct", timing.wrong.empty()},
               {"layers", timing.layers}};
      if (!timing.wrong.empty()) {
        entry["wrong"] = timing.wrong;
        one["correct"] = false;
      }
    }
    for (const char* rival : {"cublaslt", "cublaslt-best"})
      for (const char* own : {"sluice-constant", "sluice"})
        if (const double ratio = chain_ratio(result, rival, own); ratio > 0) one["ratios"][fmt::format("{}/{}", rival, own)] = ratio;
    json["results"].push_back(one);
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace sluice::bench
