// The vendor's NVRTC behind the software GPU's: each call of the table as it does it.
//
// It is the library that the program would have found without ours: in LD_LIBRARY_PATH, in
// CUDA_PATH or CUDA_HOME, in the usual places of a toolkit, or where the loader finds libnvrtc.so.
// Without one every call answers NVRTC_ERROR_INTERNAL_ERROR, and one sentence on standard error
// says where it was looked for. Thread safety: any thread.
#pragma once

#include <nvrtc.h>

namespace softgpu::nvrtc {

struct Vendor {
#define PASSED(name) decltype(&::name) name = nullptr;
#define OURS(name) PASSED(name)
#include "ipc/calls/nvrtc.inc"
#undef OURS
#undef PASSED
};

// The table, loaded at the first call; null entries: the library lacks them, or there is none.
const Vendor& TheVendor();

// What a call answers that can't be passed on.
template <class Result>
Result Missing() {
  return NVRTC_ERROR_INTERNAL_ERROR;
}
template <>
inline const char* Missing<const char*>() {
  return "NVRTC_ERROR unknown";
}

}  // namespace softgpu::nvrtc
