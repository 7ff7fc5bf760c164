// Operands for tests of whole products, with memory laid out as the problem says and nothing else.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "sluice/sluice.hpp"

namespace sluice::test {

// Elements of one type in memory of their own, read and written as double.
class Elements {
 public:
  Elements(DataType type, std::int64_t count) : type_(type), bytes_(static_cast<std::size_t>(count * size_bytes(type)) + 64) {
    data_ = bytes_.data() + (64 - reinterpret_cast<std::uintptr_t>(bytes_.data()) % 64) % 64;
    count_ = count;
  }
  Elements(const Elements& other) : Elements(other.type_, other.count_) {
    std::memcpy(data_, other.data_, static_cast<std::size_t>(count_ * size_bytes(type_)));
  }
  Elements& operator=(const Elements&) = delete;

  void* data() { return data_; }
  const void* data() const { return data_; }
  std::int64_t count() const { return count_; }

  double get(std::int64_t index) const {
    if (type_ == DataType::fp32) {
      float value;
      std::memcpy(&value, data_ + index * 4, 4);
      return value;
    }
    if (is_fp8(type_)) return type_ == DataType::e4m3 ? from_e4m3_bits(data_[index]) : from_e5m2_bits(data_[index]);
    std::uint16_t bits;
    std::memcpy(&bits, data_ + index * 2, 2);
    return type_ == DataType::bf16 ? from_bf16_bits(bits) : from_fp16_bits(bits);
  }
  void set(std::int64_t index, double value) {
    const float rounded = static_cast<float>(value);
    if (is_fp8(type_)) {
      data_[index] = type_ == DataType::e4m3 ? to_e4m3_bits(rounded) : to_e5m2_bits(rounded);
      return;
    }
    const std::uint16_t bits = type_ == DataType::bf16 ? to_bf16_bits(rounded) : to_fp16_bits(rounded);
    if (type_ == DataType::fp32)
      std::memcpy(data_ + index * 4, &rounded, 4);
    else
      std::memcpy(data_ + index * 2, &bits, 2);
  }
  void fill(double value) {
    for (std::int64_t i = 0; i < count_; ++i) set(i, value);
  }
  bool operator==(const Elements& other) const {
    return count_ == other.count_ && std::memcmp(data_, other.data_, static_cast<std::size_t>(count_ * size_bytes(type_))) == 0;
  }

 private:
  DataType type_;
  std::vector<unsigned char> bytes_;
  unsigned char* data_;
  std::int64_t count_;
};

constexpr std::int64_t kScaleBlock = 128;  // of K, with one scale

enum class Values { integers, normal };

// All the memory of a problem. D starts as NaN.
struct GemmData {
  GemmProblem problem;
  Elements a, b, c, bias, d;
  Elements scale_a, scale_b;  // NaN between what is read
  Elements scale_d;           // NaN unless it is given

  GemmData(const GemmProblem& unchecked, Values values, std::uint64_t seed = 1)
      : GemmData(Checked{validate(unchecked).value()}, values, seed) {}

  GemmArguments arguments() {
    return {a.data(),
            b.data(),
            c.data(),
            d.data(),
            bias.data(),
            static_cast<const float*>(scale_a.data()),
            static_cast<const float*>(scale_b.data()),
            problem.scaling_d == Scaling::none ? nullptr : static_cast<float*>(scale_d.data())};
  }

  std::int64_t index_d(std::int64_t batch, std::int64_t row, std::int64_t column) const {
    return batch * problem.batch_stride_d + row * problem.ldd + column;
  }
  double get_a(std::int64_t batch, std::int64_t row, std::int64_t k) const {
    const bool rows = problem.layout_a == Layout::row_major;
    return a.get(batch * problem.batch_stride_a + (rows ? row * problem.lda + k : k * problem.lda + row));
  }
  double get_b(std::int64_t batch, std::int64_t k, std::int64_t column) const {
    const bool rows = problem.layout_b == Layout::row_major;
    return b.get(batch * problem.batch_stride_b + (rows ? k * problem.ldb + column : column * problem.ldb + k));
  }

  double get_scale_a(std::int64_t batch, std::int64_t row, std::int64_t k) const {
    return problem.scaling_a == Scaling::none ? 1 : scale_a.get(batch * problem.batch_stride_scale_a + index_scale_a(row, k));
  }
  double get_scale_b(std::int64_t batch, std::int64_t k, std::int64_t column) const {
    return problem.scaling_b == Scaling::none ? 1 : scale_b.get(batch * problem.batch_stride_scale_b + index_scale_b(column, k));
  }
  std::int64_t index_scale_a(std::int64_t row, std::int64_t k) const {
    return index_scale(problem.scaling_a, problem.scale_layout_a, problem.ld_scale_a, row, k);
  }
  std::int64_t index_scale_b(std::int64_t column, std::int64_t k) const {
    return index_scale(problem.scaling_b, problem.scale_layout_b, problem.ld_scale_b, column, k);
  }

  // alpha A B + beta C + bias in double, one element, by definition.
  double before_activation(std::int64_t batch, std::int64_t row, std::int64_t column) const {
    double sum = 0;
    if (problem.epilogue.alpha != 0)
      for (std::int64_t block = 0; block < problem.k; block += kScaleBlock) {
        const double scale_of_a = get_scale_a(batch, row, block), scale_of_b = get_scale_b(batch, block, column);
        for (std::int64_t k = block; k < std::min(problem.k, block + kScaleBlock); ++k)
          sum += get_a(batch, row, k) * scale_of_a * get_b(batch, k, column) * scale_of_b;
      }
    sum *= problem.epilogue.alpha;
    if (problem.epilogue.beta != 0) sum += problem.epilogue.beta * c.get(batch * problem.batch_stride_c + row * problem.ldc + column);
    if (problem.epilogue.bias == Bias::per_row) sum += bias.get(row);
    if (problem.epilogue.bias == Bias::per_column) sum += bias.get(column);
    if (problem.epilogue.bias == Bias::per_group_column) sum += bias.get(batch * problem.n + column);
    return sum;
  }

 private:
  struct Checked {
    GemmProblem problem;
  };
  GemmData(const Checked& checked, Values values, std::uint64_t seed)
      : problem(checked.problem),
        a(problem.type_a, span(problem.layout_a == Layout::row_major ? problem.m : problem.k, problem.lda, problem.batch_stride_a)),
        b(problem.type_b, span(problem.layout_b == Layout::row_major ? problem.k : problem.n, problem.ldb, problem.batch_stride_b)),
        c(problem.type_d, span(problem.m, problem.ldc, problem.batch_stride_c)),
        bias(bias_type(problem.type_d), std::max(problem.m, problem.batch * problem.n)),
        d(problem.type_d, span(problem.m, problem.ldd, problem.batch_stride_d)),
        scale_a(DataType::fp32, scale_elems_a(problem)),
        scale_b(DataType::fp32, scale_elems_b(problem)),
        scale_d(DataType::fp32, scale_elems_d(problem)) {
    std::mt19937_64 random(seed);
    for (Elements* each : {&a, &b, &c, &bias}) randomise(*each, values, random);
    for (Elements* each : {&d, &scale_a, &scale_b, &scale_d}) each->fill(std::numeric_limits<double>::quiet_NaN());
    for (std::int64_t batch = 0; batch < problem.batch; ++batch)
      for (std::int64_t k = 0; k < problem.k; k += kScaleBlock) {
        for (std::int64_t row = 0; row < problem.m && problem.scaling_a != Scaling::none; ++row)
          scale_a.set(batch * problem.batch_stride_scale_a + index_scale_a(row, k), random_scale(values, random));
        for (std::int64_t column = 0; column < problem.n && problem.scaling_b != Scaling::none; ++column)
          scale_b.set(batch * problem.batch_stride_scale_b + index_scale_b(column, k), random_scale(values, random));
      }
    for (std::int64_t i = 0; i < scale_d.count() && problem.scaling_d == Scaling::per_tensor; ++i)
      scale_d.set(i, random_scale(values, random));
  }

  // Where the matrix of scales in problem.hpp has that of a vector's element k.
  static std::int64_t index_scale(Scaling scaling, Layout layout, std::int64_t leading, std::int64_t vector, std::int64_t k) {
    if (scaling == Scaling::per_tensor) return 0;
    if (scaling == Scaling::per_vector) return vector;
    const std::int64_t row = scaling == Scaling::per_block_128 ? vector / 128 : vector, column = k / 128;
    return layout == Layout::row_major ? row * leading + column : column * leading + row;
  }
  static double random_scale(Values values, std::mt19937_64& random) {
    if (values == Values::integers) return std::ldexp(1, std::uniform_int_distribution<int>(-1, 2)(random));
    return std::uniform_real_distribution<double>(0.01, 2)(random);
  }

  std::int64_t span(std::int64_t vectors, std::int64_t leading, std::int64_t batch_stride) const {
    return std::max<std::int64_t>(1, vectors * leading + std::max<std::int64_t>(0, problem.batch - 1) * batch_stride);
  }
  static void randomise(Elements& elements, Values values, std::mt19937_64& random) {
    std::uniform_int_distribution<int> small(-3, 3);
    std::normal_distribution<double> normal;
    for (std::int64_t i = 0; i < elements.count(); ++i) elements.set(i, values == Values::integers ? small(random) : normal(random));
  }
};

// A plan for the smallest device, so that every worker takes several tiles.
inline Result<Plan> plan_on_h10(const GemmProblem& problem, const PlanOptions& options = {}) {
  return plan(problem, find_device("h10").value(), options);
}

}  // namespace sluice::test
