// The emulator's calls in a build without it, each of which says so.
#include "sluice/emulator.hpp"

namespace sluice {

bool built_with_emulator() { return false; }

Status run_on_emulator(const Plan&, const GemmArguments&, const EmulatorOptions&, const Progress&) {
  return Error{ErrorCode::unsupported, "this build of Sluice has no emulator; configure with -DSLUICE_EMULATOR=ON, or use run_on_cpu"};
}

}  // namespace sluice
