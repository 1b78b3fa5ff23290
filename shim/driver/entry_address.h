// The exported entry point of a driver symbol. Thread safety: constant data.
#pragma once

#include <string_view>

namespace shim {

// Null when the driver's table has no such symbol.
void* EntryAddress(std::string_view symbol);

}  // namespace shim
