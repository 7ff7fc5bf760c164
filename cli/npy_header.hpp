// The header of a .npy file is a Python dictionary literal: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/error.hpp"

namespace sluice::cli {

struct NpyHeader {
  std::string descr;  // the literal's text if it is not a string, as for structured types
  bool descr_is_string = true;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

Result<NpyHeader> parse_npy_header(std::string_view text);

}  // namespace sluice::cli
