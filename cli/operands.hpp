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

// The elements as `to`, each rounded once, to nearest even. `became_infinite` counts finite elements that `to` cannot hold.
std::vector<std::byte> convert(std::vector<std::byte> data, NpyType from, DataType to, std::int64_t& became_infinite);

bool same_type(NpyType file, DataType type);

}  // namespace sluice::cli
