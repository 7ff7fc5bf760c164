// Takes SMs away from everybody else on the GPU, as another stream, another process or a partition would.
#pragma once

#include "bench/device_memory.hpp"

namespace sluice::gpu_tests {

class Occupier {
 public:
  Occupier();
  ~Occupier();
  Occupier(const Occupier&) = delete;
  Occupier& operator=(const Occupier&) = delete;

  // Holds so many SMs, with one CTA each that leaves no room for another beside it; returns when all of them are there. They end when they
  // are told to, or after kMostSeconds. False: they have not come.
  bool hold(int sms);
  // False: some had ended by themselves, so that whatever ran beside them may have waited for that.
  bool release();

  // Enqueues CTAs that hold an SM each for some microseconds, and returns at once.
  void pass_by(int ctas, int microseconds);
  void wait() const { stream_.synchronize("waiting for the CTAs that hold SMs"); }

  static constexpr double kMostSeconds = 5;

 private:
  struct Words;  // in host memory that the GPU sees
  void tell(unsigned stop);

  bench::DeviceBuffer stop_;
  bench::DeviceStream stream_;
  bench::DeviceStream orders_;
  Words* words_ = nullptr;
};

}  // namespace sluice::gpu_tests
