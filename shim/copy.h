// Copies between the program's memory and its device memory.
//
// Pageable memory crosses through messages (small) or staging chunks (large, pipelined: while the
// worker copies one chunk, this side fills or empties the next). Pinned and device memory is the
// same memory on both sides, and the worker copies it directly. CUDA's rules of what has happened
// when a call returns: from pageable memory, the bytes have been read; to pageable memory, they
// have arrived; otherwise only `synchronous` copies that touch the host wait. Thread safety: any
// thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "shim/memory.h"
#include "shim/state.h"

namespace shim {

struct Copy {
  uint64_t to = 0;
  uint64_t from = 0;
  size_t bytes = 0;
  bool synchronous = true;
};

// Where both ends lie is told by their addresses (unified addressing). A device end outside the
// program's allocations is CUDA_ERROR_INVALID_VALUE.
CUresult CopyLinear(const Copy& copy, const Stream& stream);

// `height` rows of `width` bytes.
struct PitchedCopy {
  uint64_t to = 0;
  size_t to_pitch = 0;
  uint64_t from = 0;
  size_t from_pitch = 0;
  size_t width = 0;
  size_t height = 0;
  bool synchronous = true;
};
CUresult CopyRows(const PitchedCopy& copy, const Stream& stream);

}  // namespace shim
