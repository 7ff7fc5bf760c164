// From arrays as files hold them to matrices as GemmProblem describes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "npy.hpp"
#include "sluice/types.hpp"

namespace sluice::cli {

// A dense matrix, or a batch of them one after another.
struct Matrices {
  NpyType type = NpyType::fp32;
  bool batched = false;  // the file had three dimensions
  std::int64_t batch = 1;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  Layout layout = Layout::row_major;
  std::vector<std::byte> data;
  bool rearranged = false;  // Fortran order in three dimensions: no layout of Sluice, so it was copied
};

// `file_holds_transpose`: the file holds the transpose of the matrix that is meant. Layouts follow from that and from the array's order,
// no element moves (but see `rearranged`).
Result<Matrices> to_matrices(NpyArray array, const std::string& path, bool file_holds_transpose);

// Copies if the layout is not row-major yet.
void make_row_major(Matrices& matrices);

// Normally distributed numbers in fp32, drawn from the seed. `batch` of 0: one matrix, and no batch.
Matrices random_matrices(std::int64_t batch, std::int64_t rows, std::int64_t columns, Layout layout, std::uint64_t seed);

// One element as a double, and back: rounded once, to nearest even. store_element() returns whether the value was too large: a
// finite one becomes infinite, and with an FP8 type all become its largest finite number. Bytes are no elements: only the user knows their
// type.
double load_element(const std::byte* from, NpyType type);
bool store_element(std::byte* to, DataType type, double value);

// The elements as `to`. `too_large` counts finite elements that `to` cannot hold.
std::vector<std::byte> convert(std::vector<std::byte> data, NpyType from, DataType to, std::int64_t& too_large);

std::string elements_are(std::int64_t count, const char* what);  // "1 element of A is", "2 elements of A are"

bool same_type(NpyType file, DataType type);

constexpr double largest_fp8(DataType type) { return type == DataType::e4m3 ? 448 : 57344; }

}  // namespace sluice::cli
