// Which parameters of a kernel may be given another address, without the kernel doing anything else
// than reaching its memory there. Internal to replay/.
//
// Such a parameter is loaded as a whole, moved by numbers, and used as the address of loads, stores
// and atomics. The kernel would see the difference where it compares the address, keeps the
// address, tests its low bits or subtracts it from another. Thread safety: pure.
#pragma once

#include "replay/data_flow.h"
#include "replay/origins.h"

namespace softgpu::ptx {
class KernelImpl;
}

namespace replay {

// A bit for each of the flow's origins. REQUIRES: the flow is that of the kernel, and solved.
OriginSet MovableParameters(const softgpu::ptx::KernelImpl& kernel, DataFlow* flow);

}  // namespace replay
