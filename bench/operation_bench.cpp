#include "bench/operation_bench.hpp"

#include "bench/console.hpp"
#include "bench/operation_cases.hpp"

namespace sluice {
namespace {

struct Operation {
  const char* command;
  Result<int> (*measure)(const OperationBenchOptions& options);
};

Operation find(BenchedOperation operation) {
  switch (operation) {
    case BenchedOperation::quantize:
      return {"bench-quantize", &bench::measure_quantize};
    case BenchedOperation::pack_w4:
      return {"bench-pack", &bench::measure_pack_w4};
    case BenchedOperation::histogram:
      return {"bench-histogram", &bench::measure_histogram};
    case BenchedOperation::attention:
      break;
  }
  return {"bench-attention", &bench::measure_attention};
}

}  // namespace

int run_operation_bench(BenchedOperation operation, const OperationBenchOptions& options) {
  const Operation found = find(operation);
  return bench::run_reported(found.command, options.json, [&] { return found.measure(options); });
}

}  // namespace sluice
