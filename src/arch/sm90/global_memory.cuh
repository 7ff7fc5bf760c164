// Global memory: ordinary accesses.
#pragma once

#include "arch/sm90/device.cuh"

namespace sluice::arch {

template <class T>
SLUICE_DEVICE T load_global(const T* source) {
  return *source;
}
template <class T>
SLUICE_DEVICE void store_global(T* destination, const T& value) {
  *destination = value;
}

}  // namespace sluice::arch
