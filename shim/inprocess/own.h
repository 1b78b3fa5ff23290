// Declares shim::inprocess::own::cuFoo for every driver entry point, with the type that cuda.h
// gives it. A function that is defined stands before the driver's. The declarations are weak, and
// exports.cc passes calls without a definition on to the driver.
#pragma once

#include "ipc/calls/vendor.h"

namespace shim::inprocess {

namespace own {
#define CALL(fn, ...) extern decltype(::fn) fn __attribute__((weak, visibility("hidden")));
#include "ipc/calls/driver.inc"
#undef CALL
}  // namespace own

// What this library exports as `symbol`; null: no such name. `passes`: the driver's own would do as
// well.
void* EntryAddress(const char* symbol, bool* passes);

}  // namespace shim::inprocess
