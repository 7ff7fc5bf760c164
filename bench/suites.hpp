// Which shapes are measured.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "bench/bench.hpp"
#include "sluice/error.hpp"
#include "sluice/problem.hpp"
#include "sluice/w4_format.hpp"

namespace sluice::bench {

struct Shape {
  std::string suite;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  DataType type = DataType::bf16;         // of A and B, or int4: of B alone. See problem_of()
  DataType activations = DataType::bf16;  // beside int4

  bool operator==(const Shape&) const = default;
};

// Groups of 128 without zero points: what most models quantised to 4 bits have.
inline constexpr W4Format kBenchW4 = {};
inline constexpr DataType kCodeScales = DataType::bf16;  // as they are packed from
inline bool has_w4(const Shape& shape) { return shape.type == DataType::int4; }
inline DataType type_of_a(const Shape& shape) { return has_w4(shape) ? shape.activations : shape.type; }

std::string to_string(const Shape& shape);  // "4096x4096x4096"

// "square", "wave", "splitk", "llm", those together ("all"); "fp8": the projections of a mixture-of-experts model in e4m3; "w4a16":
// layers of Llama 3 with weights of 4 bits; "w4a8": the same beside activations of e4m3, without scales; and "random": a hundred shapes
// drawn from a seed.
const std::vector<std::string>& suite_names();

// The shapes of the suites and files named, separated by commas. A shape that a suite names again is not there twice.
Result<std::vector<Shape>> find_shapes(const std::string& suites_or_files, std::uint64_t seed = 1);

// One shape a line: "m,n,k" (a header line and lines that begin with # are skipped), or {"m": 1, "n": 2, "k": 3}. `origin` is named in
// error messages and becomes the suite's name.
Result<std::vector<Shape>> read_shapes(std::istream& lines, const std::string& origin);

// Those that the options leave, in the type they ask for.
std::vector<Shape> filter_shapes(std::vector<Shape> shapes, const BenchOptions& options);

// What Sluice is asked for. FP8: A has a scale for each row and 128 of K, B for each 128 columns and 128 of K, as models quantised after
// DeepSeek-V3 (arXiv 2412.19437) have them; they lie as cuBLASLt wants them (see cublaslt.hpp).
GemmProblem problem_of(const Shape& shape, const BenchOptions& options);

// The same product of weights that are not packed, of A's type: what a rival without weights of 4 bits is asked for, and what results are
// checked against. Others are returned as they are. Of a validated problem, and such a one itself.
GemmProblem with_dense_weights(const GemmProblem& problem);
Shape with_dense_weights(Shape shape);

// The class of M under which results are summed up: "m<=128", "128<m<2048" (512 in the llm suite), "m>=2048".
std::string_view m_class(std::int64_t m);
const std::vector<std::string>& m_classes();

// What a multiplication must do and move at the least.
double flops(const Shape& shape);
double bytes(const Shape& shape);  // each input and scale read once, the output (bf16) written once
bool memory_bound(const Shape& shape);

}  // namespace sluice::bench
