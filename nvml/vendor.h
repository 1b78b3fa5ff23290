// The vendor's NVML behind ours: on a GPU it answers what we do not.
//
// It is the library that the program would have found without ours: in LD_LIBRARY_PATH, else where
// distributions and containers put it. Thread safety: any thread.
#pragma once

#include "nvml/api.h"

namespace nvml {

struct Vendor {
#define ALWAYS(name) decltype(&::name) name = nullptr;
#define OURS ALWAYS
#define ANSWERED ALWAYS
#define DEVICE ALWAYS
#define SETTING ALWAYS
#include "ipc/calls/nvml.inc"
#undef SETTING
#undef DEVICE
#undef ANSWERED
#undef OURS
#undef ALWAYS
};

// The table, loaded at the first call. Null entries: the library is older, or there is none.
const Vendor& TheVendor();

}  // namespace nvml
