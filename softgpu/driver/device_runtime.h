// The device runtime library (libcudadevrt.a) as this device knows it.
//
// The vendor's library holds machine code and calls of its driver. A link with that library gets
// PTX of our own for the part that needs no launches from the device: synchronising a cooperative
// grid. Thread safety: functions without state.
#pragma once

#include <string_view>

namespace softgpu {

// True for an archive with the device runtime in it, and for the fat binary of relocatable code
// that nvcc takes from there into a program.
bool IsDeviceRuntimeUntrusted(std::string_view input);

// Its functions, a module.
extern const char kDeviceRuntimePtx[];

}  // namespace softgpu
