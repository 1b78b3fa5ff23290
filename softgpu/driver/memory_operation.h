// Stream memory operations: waits for a value in memory and writes of one, alone or in batches.
//
// A wait sees writes of anybody: kernels, host threads, other processes that map the page. It spins
// shortly, then sleeps ever longer, so a stream that waits for seconds costs next to no processor
// time. Thread safety: functions without state.
#pragma once

#include <cuda.h>

#include <memory>
#include <vector>

#include "softgpu/driver/operation.h"

namespace softgpu {

class Context;

// Checks addresses and flags. The operation runs on the stream's own thread when it contains a
// wait.
CUresult MakeMemoryOperation(std::shared_ptr<Context> context,
                             std::vector<CUstreamBatchMemOpParams> items,
                             std::unique_ptr<Operation>* operation);

}  // namespace softgpu
