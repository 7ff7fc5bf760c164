#include "bench/suites.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include <nlohmann/json.hpp>

#include "sluice/w4.hpp"

namespace sluice::bench {
namespace {

struct Weights {
  std::int64_t n, k;
};

// Linear layers: query/key/value, attention output, gate and up, down, of Llama 3 8B, Llama 3 70B and a 32B model with 5120 hidden units,
// then the projections of a mixture-of-experts model with 7168.
constexpr Weights kLlmWeights[] = {{6144, 4096},  {4096, 4096},  {28672, 4096}, {4096, 14336}, {10240, 8192}, {8192, 8192},
                                   {57344, 8192}, {8192, 28672}, {7168, 5120},  {51200, 5120}, {5120, 25600}, {2112, 7168},
                                   {24576, 1536}, {7168, 16384}, {4096, 7168},  {7168, 2048}};
constexpr std::int64_t kLlmRows[] = {1, 16, 64, 128, 512, 2048, 8192};

constexpr std::int64_t kSquareSizes[] = {512, 1024, 2048, 4096, 8192, 16384};

// Few rows or columns and a long K: most multiprocessors idle unless K is split.
constexpr std::int64_t kSplitK[][3] = {{128, 128, 16384}, {128, 128, 131072}, {256, 256, 32768},  {512, 512, 16384},
                                       {64, 2048, 16384}, {16, 4096, 14336},  {128, 7168, 16384}, {1024, 128, 65536}};

std::vector<Shape> square() {
  std::vector<Shape> shapes;
  for (const std::int64_t size : kSquareSizes) shapes.push_back({"square", size, size, size});
  return shapes;
}

// N grows by two tiles of 256 at a time: each whole wave shows as a step.
std::vector<Shape> wave() {
  std::vector<Shape> shapes;
  for (std::int64_t n = 256; n < 8192; n += 512) shapes.push_back({"wave", 1024, n, 4096});
  return shapes;
}

std::vector<Shape> splitk() {
  std::vector<Shape> shapes;
  for (const auto& [m, n, k] : kSplitK) shapes.push_back({"splitk", m, n, k});
  return shapes;
}

std::vector<Shape> llm() {
  std::vector<Shape> shapes;
  for (const Weights& weights : kLlmWeights)
    for (const std::int64_t m : kLlmRows) shapes.push_back({"llm", m, weights.n, weights.k});
  return shapes;
}

// The projections of the model with 7168 hidden units, which is served in FP8.
std::vector<Shape> fp8() {
  constexpr Weights kWeights[] = {{2112, 7168}, {24576, 1536}, {32768, 512}, {7168, 16384}, {4096, 7168}, {7168, 2048}};
  constexpr std::int64_t kRows[] = {64, 128, 1024, 4096};
  std::vector<Shape> shapes;
  for (const Weights& weights : kWeights)
    for (const std::int64_t m : kRows) shapes.push_back({"fp8", m, weights.n, weights.k, DataType::e4m3});
  return shapes;
}

// Those of Llama 3 8B and 70B, from one row, where memory alone counts, to as many as make the tensor cores count.
std::vector<Shape> w4a16() {
  constexpr Weights kWeights[] = {{4096, 4096}, {4096, 14336}, {8192, 8192}, {8192, 28672}, {10240, 8192}, {28672, 4096}, {57344, 8192}};
  constexpr std::int64_t kRows[] = {1, 8, 16, 32, 64, 128, 256, 1024};
  std::vector<Shape> shapes;
  for (const Weights& weights : kWeights)
    for (const std::int64_t m : kRows) shapes.push_back({"w4a16", m, weights.n, weights.k, DataType::int4});
  return shapes;
}
std::vector<Shape> w4a8() {
  std::vector<Shape> shapes = w4a16();
  for (Shape& shape : shapes) {
    shape.suite = "w4a8";
    shape.activations = DataType::e4m3;
  }
  return shapes;
}

// Drawn by hand: the standard library's distributions differ between libraries, and the shapes of a seed must not.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : bits_(seed) {}
  double uniform() { return static_cast<double>(bits_() >> 11) * 0x1p-53; }
  // As many between 64 and 128 as between 16384 and 32768.
  std::int64_t log_uniform(double least, double most) { return std::llround(least * std::exp2(uniform() * std::log2(most / least))); }

 private:
  std::mt19937_64 bits_;
};

// Shapes that nothing was tuned for. Sizes of models are mostly multiples of 64, a few of 8 alone. No B has more than 2^30 elements.
std::vector<Shape> random_shapes(std::uint64_t seed) {
  constexpr int kShapes = 100;
  constexpr double kMostRows = 8192, kLeast = 64, kMost = 32768, kShareOfEights = 0.25;
  Draw draw(seed);
  const auto size = [&] {
    const std::int64_t step = draw.uniform() < kShareOfEights ? 8 : 64;
    return (draw.log_uniform(kLeast, kMost) + step / 2) / step * step;
  };
  std::vector<Shape> shapes;
  while (static_cast<int>(shapes.size()) < kShapes) {
    Shape shape{.suite = "random", .m = draw.log_uniform(1, kMostRows)};
    shape.n = size();
    shape.k = size();
    if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
  }
  return shapes;
}

bool read_csv_line(std::string_view line, Shape& shape) {
  std::int64_t* const values[] = {&shape.m, &shape.n, &shape.k};
  for (int i = 0; i < 3; ++i) {
    while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
    const auto [end, problem] = std::from_chars(line.data(), line.data() + line.size(), *values[i]);
    if (problem != std::errc()) return false;
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    while (!line.empty() && (line.front() == ' ' || line.front() == '\r')) line.remove_prefix(1);
    if (i == 2) return line.empty();
    if (line.empty() || line.front() != ',') return false;
    line.remove_prefix(1);
  }
  return false;
}

bool read_json_line(const std::string& line, Shape& shape) {
  const nlohmann::json value = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!value.is_object()) return false;
  for (const auto& [key, target] : {std::pair{"m", &shape.m}, {"n", &shape.n}, {"k", &shape.k}}) {
    const auto found = value.find(key);
    if (found == value.end() || !found->is_number_integer()) return false;
    *target = found->get<std::int64_t>();
  }
  return true;
}

}  // namespace

std::string to_string(const Shape& shape) {
  return std::to_string(shape.m) + "x" + std::to_string(shape.n) + "x" + std::to_string(shape.k);
}

Result<std::vector<Shape>> read_shapes(std::istream& lines, const std::string& origin) {
  std::vector<Shape> shapes;
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos || line[first] == '#') continue;
    Shape shape{.suite = origin};
    const bool json = line[first] == '{';
    if (!(json ? read_json_line(line, shape) : read_csv_line(line, shape))) {
      const bool header = !json && shapes.empty() && line.find_first_of("0123456789") == std::string::npos;
      if (header) continue;
      return Error{ErrorCode::bad_format, origin + ":" + std::to_string(number) + ": '" + line +
                                              "' is no shape; write m,n,k as integers, or {\"m\": 1, \"n\": 2, \"k\": 3}"};
    }
    if (shape.m <= 0 || shape.n <= 0 || shape.k <= 0)
      return Error{ErrorCode::invalid_argument,
                   origin + ":" + std::to_string(number) + ": " + to_string(shape) + " has a size below 1; there would be nothing to time"};
    if (shape.k % 8 != 0)
      return Error{ErrorCode::unsupported,
                   origin + ":" + std::to_string(number) + ": k = " + std::to_string(shape.k) +
                       " leaves rows of A and B unaligned, which cuBLASLt and the tensor memory accelerator refuse; "
                       "use a multiple of 8"};
    shapes.push_back(shape);
  }
  if (shapes.empty()) return Error{ErrorCode::bad_format, origin + " holds no shape; write m,n,k in each line"};
  return shapes;
}

const std::vector<std::string>& suite_names() {
  static const std::vector<std::string> names = {"square", "wave", "splitk", "llm", "all", "fp8", "w4a16", "w4a8", "random"};
  return names;
}

namespace {

Result<std::vector<Shape>> find_one(const std::string& wanted, std::uint64_t seed) {
  std::vector<Shape> all;
  using Make = std::vector<Shape> (*)();
  constexpr std::pair<const char*, Make> kSuites[] = {{"square", square}, {"wave", wave}, {"splitk", splitk}, {"llm", llm}};
  for (const auto& [suite, make] : kSuites) {
    std::vector<Shape> shapes = make();
    if (wanted == suite) return shapes;
    all.insert(all.end(), shapes.begin(), shapes.end());
  }
  if (wanted == "all") return all;
  if (wanted == "fp8") return fp8();
  if (wanted == "w4a16") return w4a16();
  if (wanted == "w4a8") return w4a8();
  if (wanted == "random") return random_shapes(seed);
  std::error_code ignored;
  std::ifstream file;
  if (std::filesystem::is_regular_file(wanted, ignored)) file.open(wanted);
  if (file.is_open()) return read_shapes(file, std::filesystem::path(wanted).filename().string());
  std::string known;
  for (const std::string& name : suite_names()) known += (known.empty() ? "" : ", ") + name;
  return Error{ErrorCode::not_found, "'" + wanted + "' is neither a suite (" + known + ") nor a file that can be read"};
}

}  // namespace

Result<std::vector<Shape>> find_shapes(const std::string& wanted, std::uint64_t seed) {
  std::vector<Shape> shapes;
  for (std::size_t begin = 0; begin <= wanted.size();) {
    const std::size_t end = std::min(wanted.find(',', begin), wanted.size());
    Result<std::vector<Shape>> more = find_one(wanted.substr(begin, end - begin), seed);
    if (!more) return more;
    for (const Shape& shape : *more)
      if (std::find(shapes.begin(), shapes.end(), shape) == shapes.end()) shapes.push_back(shape);
    begin = end + 1;
  }
  return shapes;
}

std::vector<Shape> filter_shapes(std::vector<Shape> shapes, const BenchOptions& options) {
  std::erase_if(shapes, [&](const Shape& shape) {
    return shape.m < options.m_min || shape.m > options.m_max || to_string(shape).find(options.shape_filter) == std::string::npos;
  });
  for (Shape& shape : shapes) shape.type = options.type.value_or(shape.type);
  return shapes;
}

namespace {

constexpr std::int64_t kScaleBlock = 128;

std::int64_t round_up(std::int64_t value, std::int64_t unit) { return (value + unit - 1) / unit * unit; }
std::int64_t scale_blocks(std::int64_t extent) { return round_up(extent, kScaleBlock) / kScaleBlock; }

}  // namespace

GemmProblem problem_of(const Shape& shape, const BenchOptions& options) {
  GemmProblem p{.m = shape.m, .n = shape.n, .k = shape.k, .type_a = shape.type, .type_b = shape.type, .constant_b = options.constant_b};
  p.type_a = type_of_a(shape);
  if (!is_fp8(shape.type)) return p;
  constexpr std::int64_t kRowBytes = 16, kAdjacentScales = 4;
  p.lda = p.ldb = round_up(shape.k, kRowBytes);
  p.scaling_a = Scaling::per_vector_128;
  p.scale_layout_a = Layout::column_major;
  p.scaling_b = Scaling::per_block_128;
  p.ld_scale_b = round_up(scale_blocks(shape.k), kAdjacentScales);
  return p;
}

GemmProblem with_dense_weights(const GemmProblem& problem) {
  if (problem.type_b != DataType::int4) return problem;
  GemmProblem dense = problem;
  dense.type_b = problem.type_a;
  dense.ldb = problem.k;
  dense.batch_stride_b = problem.n * problem.k;
  return dense;
}

Shape with_dense_weights(Shape shape) {
  shape.type = type_of_a(shape);
  shape.activations = DataType::bf16;
  return shape;
}

std::string_view m_class(std::int64_t m) { return m_classes()[m <= 128 ? 0 : m < 2048 ? 1 : 2]; }

const std::vector<std::string>& m_classes() {
  static const std::vector<std::string> classes = {"m<=128", "128<m<2048", "m>=2048"};
  return classes;
}

double flops(const Shape& s) { return 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k); }

double bytes(const Shape& s) {
  const double m = static_cast<double>(s.m), n = static_cast<double>(s.n), k = static_cast<double>(s.k);
  const double output = 2.0 * m * n;
  if (has_w4(s)) return m * k * size_bytes(s.activations) + static_cast<double>(packed_w4_bytes(s.n, s.k, kBenchW4)) + output;
  const double inputs = (m * k + n * k) * size_bytes(s.type);
  if (!is_fp8(s.type)) return inputs + output;
  return inputs + output + sizeof(float) * static_cast<double>((s.m + scale_blocks(s.n)) * scale_blocks(s.k));
}

// An H200 multiplies about 190 operations of bf16 for each byte its memory brings (869 TFLOP/s sustained over 4.65 TB/s, November 2026),
// and its tensor cores take twice as many of FP8.
bool memory_bound(const Shape& shape) { return flops(shape) < (is_fp8(type_of_a(shape)) ? 380 : 190) * bytes(shape); }

}  // namespace sluice::bench
