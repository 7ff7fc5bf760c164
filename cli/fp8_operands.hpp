// FP8 operands of `sluice gemm`: elements in rows that the kernels take, and their scales, from a file or found from the elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "operands.hpp"
#include "sluice/error.hpp"
#include "sluice/problem.hpp"
#include "sluice/scaling.hpp"

namespace sluice::cli {

enum class OperandName : char { a = 'a', b = 'b' };

struct WantedScales {
  std::string scaling;  // --scaling-a; empty: none, or what the file's shape says
  std::string path;     // --scale-a; empty: found from the elements
};

struct Fp8Operand {
  std::vector<std::byte> data;  // K contiguous
  std::int64_t leading = kPacked;
  Scaling scaling = Scaling::none;
  Layout scale_layout = Layout::row_major;
  std::int64_t batch_stride_scale = kPacked;
  std::vector<float> scales;
  std::string how;                    // behind the line about the file: ", converted to e4m3"
  std::vector<std::string> lines;     // of the scales' file
  std::vector<std::string> warnings;  // what the user may not have meant
};

// The shape of a file of scales: of `vectors` rows of A or columns of B, k elements each.
std::vector<std::int64_t> scale_shape(Scaling scaling, std::int64_t vectors, std::int64_t k);

// Wide elements are rounded to `type`. With a scaling but no file of scales each is first divided by its scale, which makes the largest
// of those that share it the largest number of `type`. `batch` is that of the product.
Result<Fp8Operand> to_fp8(const Matrices& matrices, OperandName name, DataType type, const WantedScales& wanted, std::int64_t batch);

}  // namespace sluice::cli
