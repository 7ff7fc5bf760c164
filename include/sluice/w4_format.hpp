// Weights of 4 bits: what a number of them means. How they are packed: sluice/w4.hpp.
#pragma once

namespace sluice {

// A weight is (q - z) * s, rounded to the type of the activations, with q the 4 bits (0 to 15), and s and z those of its group: so many
// neighbouring elements of K in one column of B.
struct W4Format {
  int group_size = 128;      // elements of K: 32, 64 or 128, or 0: the whole column. The last group of a column may be short
  bool zero_points = false;  // each group has its z, 0 to 16; else z is 8 everywhere

  bool operator==(const W4Format&) const = default;
};

}  // namespace sluice
