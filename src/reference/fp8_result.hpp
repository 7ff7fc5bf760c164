// What a D in FP8 and its scales may be, from what it may be in fp32.
#pragma once

#include "sluice/types.hpp"

#include "reference/error_bound.hpp"

namespace sluice {

// The greatest magnitude of values that share a scale, as far as their bounds leave it open.
class LargestMagnitude {
 public:
  void add(const ElementBound& value);
  // Whether the scale of one of these magnitudes can be that, by the rule of quantize().
  bool allows(DataType type, float scale) const;

 private:
  double lowest_ = 0;
  double highest_ = 0;
};

// What a value may be times 1 / scale, rounded: in units of the scale.
ElementBound quantised(const ElementBound& value, float scale, DataType type);

}  // namespace sluice
