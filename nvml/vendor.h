// The vendor's NVML behind ours: on a GPU it answers what we do not.
//
// It is the library that the program would have found without ours: in LD_LIBRARY_PATH, else where
// distributions and containers put it. Thread safety: any thread.
#pragma once

#include "nvml/api.h"

namespace nvml {

struct Vendor {
#define ROW(name) decltype(&::name) name = nullptr;
#include "ipc/calls/nvml.inc"
};

// The table, loaded at the first call. Null entries: the library is older, or there is none.
const Vendor& TheVendor();

}  // namespace nvml
