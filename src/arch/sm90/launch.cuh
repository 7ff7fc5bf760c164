// Programmatic dependent launch: the order between a kernel and its neighbours in the stream.
#pragma once

#include "arch/sm90/device.cuh"

namespace sluice::arch {

// Returns once every kernel before this one in the stream has finished and its writes are visible. No wait without the launch attribute.
SLUICE_DEVICE void wait_for_predecessor() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// When all CTAs have said so, the next kernel may start to take over SMs as they become free. It says nothing about results.
SLUICE_DEVICE void allow_successor() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

}  // namespace sluice::arch
