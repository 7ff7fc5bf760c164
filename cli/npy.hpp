// Files of numpy arrays, formats 1.0, 2.0 and 3.0: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sluice/error.hpp"
#include "sluice/histogram.hpp"
#include "sluice/types.hpp"

namespace sluice::cli {

// bytes: FP8 numbers, of which type only the user knows.
enum class NpyType { bf16, fp16, fp32, fp64, bytes };

const char* to_string(NpyType type);
int size_bytes(NpyType type);

struct NpyArray {
  NpyType type = NpyType::fp32;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> data;
};

std::string shape_text(const std::vector<std::int64_t>& shape);  // "(2, 3)"

// numpy has no FP8. Its bits are kept in uint8, or as '|V1' by ml_dtypes: both read as bytes.
// numpy has no bf16. ml_dtypes (JAX, and PyTorch by way of it) writes it as '<V2', which reads as bf16 here. Others keep its bits in
// uint16, which could be anything: they must say so with `bf16_as_uint16`.
Result<NpyArray> read_npy(const std::string& path, bool bf16_as_uint16);

// Whole numbers, int32 or int64, in one dimension.
Result<std::vector<std::int64_t>> read_npy_integers(const std::string& path);

// In C order. What is of FP8 or packed of 4 bits goes as uint8.
Status write_npy(const std::string& path, DataType type, const std::vector<std::int64_t>& shape, std::span<const std::byte> data);
// Whole numbers, as int32 in one dimension.
Status write_npy_integers(const std::string& path, const std::vector<std::int32_t>& numbers);

// Samples to be counted: all numbers of an array, int32, uint8 or float32, in the order of the file.
struct NpySamples {
  HistogramSample type = HistogramSample::int32;
  std::int64_t count = 0;
  std::vector<std::byte> data;
};
Result<NpySamples> read_npy_samples(const std::string& path);

// In one dimension.
Status write_npy_counts(const std::string& path, CountType type, const std::vector<std::byte>& data);

}  // namespace sluice::cli
