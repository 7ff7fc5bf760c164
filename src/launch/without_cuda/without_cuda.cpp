// The launch room of a build without CUDA: the same calls, each of which says so.
#include "sluice/device.hpp"
#include "sluice/run.hpp"

namespace sluice {
namespace {

Error no_cuda() {
  return {ErrorCode::unsupported, "this build of Sluice has no CUDA kernels; configure with -DSLUICE_CUDA=ON, or use run_on_cpu"};
}

}  // namespace

bool built_with_cuda() { return false; }
Result<DeviceSpec> current_device() { return no_cuda(); }
Status prepare_workspace(void*, std::size_t, Stream) { return no_cuda(); }
Status run(const Plan&, const GemmArguments&, void*, std::size_t, Stream) { return no_cuda(); }

}  // namespace sluice
