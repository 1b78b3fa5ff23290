// Finds out whether a module has state that only the driver holds, so that a rebuild of the session
// would lose the state. Also whether its kernels print: a launch that is executed twice would tell
// the program the same twice.
//
// A session's memory lives in its arena and outlives the worker. The device variables of a module
// end with the worker. Constant memory is written by the host alone, and the client keeps a copy.
// So a module has such state in three cases: it has variables in global memory other than string
// literals, it allocates from the device's heap, or it calls through pointers. The driver chooses
// the values of pointers, and the program may have stored them. The image is only searched, never
// trusted to be sound. Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace worker {

enum class ModuleState : uint8_t {
  kNone,
  kPrints,   // it has none, and its kernels may print
  kHeld,     // it has such state
  kUnknown,  // it can't be told
};

// `image`: PTX text, an ELF file, or a fat binary of both.
ModuleState StateOfModule(std::span<const std::byte> image);

}  // namespace worker
