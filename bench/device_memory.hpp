// Device memory, streams, events and graphs that free themselves, and CUDA errors as exceptions. Benchmarks and tests only: the library
// itself neither allocates nor throws.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

#include <cuda_runtime_api.h>

namespace sluice::bench {

struct DeviceFailure : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws DeviceFailure that names what was being done.
void check(cudaError_t error, const std::string& doing);

class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::size_t bytes);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    swap(other);
    return *this;
  }

  std::byte* data() const { return data_; }
  std::size_t size_bytes() const { return bytes_; }

 private:
  void swap(DeviceBuffer& other) {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
  }
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

class DeviceStream {
 public:
  DeviceStream();
  ~DeviceStream();
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;
  operator cudaStream_t() const { return stream_; }
  void synchronize(const std::string& doing) const;

 private:
  cudaStream_t stream_ = nullptr;
};

class DeviceEvent {
 public:
  DeviceEvent();
  ~DeviceEvent();
  DeviceEvent(const DeviceEvent&) = delete;
  DeviceEvent& operator=(const DeviceEvent&) = delete;
  void record(cudaStream_t stream) const;
  bool has_come() const;                            // whether all before it has been done
  double us_until(const DeviceEvent& later) const;  // both have come

 private:
  cudaEvent_t event_ = nullptr;
};

// What one stream capture holds, ready to be launched again and again.
class Graph {
 public:
  // `enqueue` puts the work on the stream.
  template <class Enqueue>
  Graph(cudaStream_t stream, Enqueue&& enqueue) {
    begin(stream);
    try {
      enqueue();
    } catch (...) {
      abandon(stream);
      throw;
    }
    end(stream);
  }
  ~Graph();
  Graph(Graph&& other) noexcept : exec_(std::exchange(other.exec_, nullptr)) {}
  Graph& operator=(Graph&& other) noexcept {
    std::swap(exec_, other.exec_);
    return *this;
  }
  void launch(cudaStream_t stream) const;

 private:
  void begin(cudaStream_t stream);
  void end(cudaStream_t stream);
  void abandon(cudaStream_t stream);
  cudaGraphExec_t exec_ = nullptr;
};

}  // namespace sluice::bench
