#include "bench/device_memory.hpp"

namespace sluice::bench {

void check(cudaError_t error, const std::string& doing) {
  if (error == cudaSuccess) return;
  throw DeviceFailure(doing + ": " + cudaGetErrorName(error) + ": " + cudaGetErrorString(error));
}

DeviceBuffer::DeviceBuffer(std::size_t bytes) : bytes_(bytes) {
  void* memory = nullptr;
  if (bytes > 0) check(cudaMalloc(&memory, bytes), "allocating " + std::to_string(bytes) + " bytes of device memory");
  data_ = static_cast<std::byte*>(memory);
}

DeviceBuffer::~DeviceBuffer() {
  if (data_ != nullptr) cudaFree(data_);
}

DeviceStream::DeviceStream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating a stream"); }

DeviceStream::~DeviceStream() { cudaStreamDestroy(stream_); }

void DeviceStream::synchronize(const std::string& doing) const { check(cudaStreamSynchronize(stream_), doing); }

DeviceEvent::DeviceEvent() { check(cudaEventCreate(&event_), "creating an event"); }

DeviceEvent::~DeviceEvent() { cudaEventDestroy(event_); }

void DeviceEvent::record(cudaStream_t stream) const { check(cudaEventRecord(event_, stream), "recording an event"); }

bool DeviceEvent::has_come() const {
  const cudaError_t status = cudaEventQuery(event_);
  if (status != cudaErrorNotReady) check(status, "waiting for an event");
  return status == cudaSuccess;
}

double DeviceEvent::us_until(const DeviceEvent& later) const {
  float ms = 0;
  check(cudaEventElapsedTime(&ms, event_, later.event_), "reading the time between two events");
  return static_cast<double>(ms) * 1e3;
}

void Graph::begin(cudaStream_t stream) {
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "beginning a stream capture");
}

void Graph::end(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream, &graph), "ending a stream capture");
  const cudaError_t made = cudaGraphInstantiate(&exec_, graph, 0);
  cudaGraphDestroy(graph);
  check(made, "instantiating a graph");
  check(cudaGraphUpload(exec_, stream), "uploading a graph");
}

void Graph::abandon(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(stream, &graph);
  if (graph != nullptr) cudaGraphDestroy(graph);
}

Graph::~Graph() {
  if (exec_ != nullptr) cudaGraphExecDestroy(exec_);
}

void Graph::launch(cudaStream_t stream) const { check(cudaGraphLaunch(exec_, stream), "launching a graph"); }

}  // namespace sluice::bench
