// Copies of boxes with an array at one end or at both.
//
// Device memory and pinned memory the worker copies directly. Pageable memory crosses through
// staging chunks, as in pitched copies (copy_rows.cc); so CUDA's rules of what has happened when a
// call returns are those of copy.h. Thread safety: any thread.
#pragma once

#include "ipc/calls/vendor.h"

#include "shim/state.h"

namespace shim {

bool HasArray(const CUDA_MEMCPY3D& params);
// The source is memory that only the program sees.
bool FromPageable(const CUDA_MEMCPY3D& params);

// 400: no such array. 1: beyond the array, or beyond memory of the program; x of an array is no
// multiple of its elements.
CUresult CheckCopyWithArray(const CUDA_MEMCPY3D& params);

// REQUIRES: HasArray.
CUresult CopyWithArray(const CUDA_MEMCPY3D& params, bool synchronous, const Stream& stream);

}  // namespace shim
