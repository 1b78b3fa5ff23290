// What all copies of boxes do, under whatever name the program calls them. Thread safety: any
// thread.
#pragma once

#include "ipc/calls/vendor.h"

namespace local {

// In the order of `program`, or into its capture. Synchronous: the call's name says so.
CUresult CopyOneBox(const CUDA_MEMCPY3D& params, CUstream program, bool synchronous);

}  // namespace local
