// Module images from files: read here, because the worker opens no path for a client.
// Thread safety: a function without state.
#pragma once

#include <string>

#include "ipc/calls/vendor.h"

namespace shim {

// 301 when there is no such file, 200 when it is too large or unreadable.
CUresult ReadModuleFile(const char* path, std::string* bytes);

}  // namespace shim
