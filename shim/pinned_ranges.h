// Ranges of the session's pinned window that the worker has mapped and registered, too.
// Thread safety: all functions.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "shim/pinned_spare.h"

namespace shim {

constexpr size_t kPinnedPage = 4096;
constexpr size_t WholePages(size_t bytes) { return (bytes + kPinnedPage - 1) & ~(kPinnedPage - 1); }

// A new range, zeroed. `flags`: of cuMemHostAlloc.
CUresult MapPinned(uint32_t wire, size_t bytes, unsigned flags, uint64_t* base);
// REQUIRES: no work on the device uses the ranges. The first failure.
CUresult UnmapPinned(uint32_t wire, const std::vector<PinnedSpare::Range>& ranges);

}  // namespace shim
