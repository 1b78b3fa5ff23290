// The exported entry points as data: name and address, for cuGetProcAddress.
#pragma once

#include <string_view>

namespace softgpu {

// The address that dlsym would return for `name`, or null when the library has no such entry point.
void* ExportedAddress(std::string_view name);

}  // namespace softgpu
