// One model after another, one number of rows after another: Sluice's chain and its rivals' made ready, checked, and timed in turn.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/bench.hpp"
#include "bench/chain.hpp"
#include "bench/cublaslt.hpp"
#include "bench/device_check.hpp"
#include "bench/device_memory.hpp"
#include "bench/operands.hpp"
#include "bench/timing.hpp"
#include "sluice/device.hpp"

namespace sluice::bench {

class ChainMeasurement {
 public:
  // `cublaslt` may be null: then there is nothing but the sampled reference to check against.
  ChainMeasurement(const BenchOptions& options, ChainModel model, const DeviceSpec& device, std::shared_ptr<const CublasLt> cublaslt);

  // A result of Sluice that is wrong ends up in `wrong`; what breaks the GPU or the rival is thrown.
  ChainResult measure(std::int64_t rows);

 private:
  // Puts one layer's product on the stream.
  using Step = std::function<void(const OperandSet& operands, cudaStream_t stream)>;
  struct Contestant {
    ChainTiming timing;
    std::vector<Step> steps;  // one for each layer
  };
  struct Products;  // the layers with so many rows, to Sluice and to cuBLASLt

  OperandSet operands(const Products& products, int block, std::size_t layer) const;
  void check_memory(std::size_t needed) const;
  Result<Contestant> sluice_chain(const Products& products, const std::string& name, bool constant_b);
  Contestant cublaslt_chain(const Products& products, const std::string& name, bool best);
  Graph graph_of(const Products& products, const Contestant& contestant) const;
  std::string verify(const Products& products, const Contestant& contestant);
  void time_all(const Products& products, std::vector<Contestant>& contestants);

  BenchOptions options_;
  ChainModel model_;
  DeviceSpec device_;
  std::shared_ptr<const CublasLt> cublaslt_;
  DeviceStream stream_;
  DeviceBuffer weights_;
  DeviceBuffer input_;      // of the first layer
  DeviceBuffer expected_;   // an output to compare with
  DeviceBuffer outputs_;    // of all layers, block by block
  DeviceBuffer workspace_;  // Sluice's: prepared before the first launch, and never written by others
  DeviceBuffer cublaslt_workspace_;
  DeviceCheck check_;
};

}  // namespace sluice::bench
