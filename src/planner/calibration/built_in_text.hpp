// The calibration that the library was built with, as JSON.
#pragma once

namespace sluice {

extern const char* const kBuiltInCalibration;

}  // namespace sluice
