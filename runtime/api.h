// Declares the bodies of the exported calls: for every CALL or FORWARD row of exports.inc, a
// function runtime::api::<name> with the type that the toolkit's headers give the exported <name>.
// A FORWARD row is its body; for a CALL row, one that is missing, or whose parameters differ, is a
// link error.
#pragma once

#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

#include "runtime/forward.h"

namespace runtime::api {

#define CALL(name, needs) decltype(::name) name;
#define FORWARD(name, driver_name, needs) \
  inline constexpr auto& name = Forward<&DriverTable::driver_name, decltype(::name)>::Body;
#define PRIVATE(name, needs)
#define PTSZ(name, body, needs)
#define PTDS(name, waiting, async_body)
#define REFUSED(name, reason)
#include "runtime/exports.inc"
#undef CALL
#undef FORWARD
#undef PRIVATE
#undef PTSZ
#undef PTDS
#undef REFUSED

// Variants that no header declares and that differ from a PTSZ row.
decltype(cudaGetDriverEntryPoint) cudaGetDriverEntryPoint_ptsz;
decltype(cudaGetDriverEntryPointByVersion) cudaGetDriverEntryPointByVersion_ptsz;

// What waits in the interface and has no name there that doesn't.
cudaError_t cudaMemcpy2DArrayToArrayAsync(cudaArray_t target, size_t target_x, size_t target_y,
                                          cudaArray_const_t source, size_t source_x,
                                          size_t source_y, size_t width, size_t height,
                                          cudaMemcpyKind kind, cudaStream_t stream);
cudaError_t cudaMemcpyArrayToArrayAsync(cudaArray_t target, size_t target_x, size_t target_y,
                                        cudaArray_const_t source, size_t source_x, size_t source_y,
                                        size_t bytes, cudaMemcpyKind kind, cudaStream_t stream);

}  // namespace runtime::api
