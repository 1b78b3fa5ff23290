// Lookups and conversions that the api_graph*.cc files share.
#pragma once

#include <cuda.h>

#include <memory>
#include <vector>

#include "softgpu/driver/error_log.h"
#include "softgpu/driver/graph.h"
#include "softgpu/driver/graph_exec.h"

namespace softgpu {

using Node = GraphNode;
using Executable = GraphExec;

#include "ipc/calls/graph_params_declared.inc"

// ipc/calls/graph_*.inc ask for it: exports.cc has run the checks that all calls have in common.
inline CUresult Ready() { return CUDA_SUCCESS; }

}  // namespace softgpu
