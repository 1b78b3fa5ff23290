// cuGetProcAddress's choice of symbol: base name, requested CUDA version and flags to the name that
// the library exports. One table for whoever exports the driver interface. Includes no vendor
// header. Thread safety: constant data.
#pragma once

#include <cstdint>
#include <string_view>

namespace ipc {

// Values of CUdriverProcAddressQueryResult.
enum class EntryStatus : int { kFound = 0, kNoSuchSymbol = 1, kVersionTooOld = 2 };

struct Entry {
  EntryStatus status = EntryStatus::kNoSuchSymbol;
  std::string_view symbol;  // NUL-terminated; empty unless found
};

// The newest variant of `base` that `cuda_version` (1000 * major + 10 * minor) already had. With
// `per_thread` (CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) its per-thread-stream twin, where
// that version had one. `base` is a base name: "cuMemAlloc", never "cuMemAlloc_v2".
//
// What the caller makes of it: a version above the driver's own is CUDA_ERROR_INVALID_VALUE, as is
// an unknown flag; otherwise cuGetProcAddress_v2 succeeds with a null pointer and the status, and
// the older cuGetProcAddress, which has no status, returns CUDA_ERROR_NOT_FOUND.
Entry FindEntry(std::string_view base, int cuda_version, bool per_thread);

}  // namespace ipc
