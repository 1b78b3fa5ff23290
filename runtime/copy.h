// What a cudaMemcpyKind says about the two sides of a copy, in the driver's terms.
// Thread safety: all functions are pure.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

namespace runtime {

bool IsCopyKind(cudaMemcpyKind kind);

// cudaMemcpyDefault makes both sides unified: the driver looks at the addresses.
CUmemorytype SourceType(cudaMemcpyKind kind);
CUmemorytype TargetType(cudaMemcpyKind kind);

}  // namespace runtime
