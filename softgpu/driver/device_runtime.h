// The device runtime library (libcudadevrt.a) as this device knows it.
//
// The vendor's archive holds machine code, so a link that names it gets PTX of our own for the part
// that needs no launches from the device: synchronising a cooperative grid. Thread safety:
// functions without state.
#pragma once

#include <string_view>

namespace softgpu {

// True for an archive with the device runtime in it.
bool IsDeviceRuntime(std::string_view library);

// Its functions, without a module header.
extern const char kDeviceRuntimePtx[];

}  // namespace softgpu
