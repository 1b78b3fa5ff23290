// Whether a module has state that a rebuild of the session would lose, because only the driver has
// it.
//
// A session's memory lives in its arena and outlives the worker; device variables of a module do
// not. Constant memory is written by the host alone, and the client keeps what it wrote. So a
// module counts when it has variables in global memory (string literals aside), allocates from the
// device's heap, or calls through pointers, whose values the driver chooses and may lie in memory.
// The image is only searched, never trusted to be sound. Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace worker {

enum class ModuleState : uint8_t {
  kNone,
  kHeld,     // it has such state
  kUnknown,  // it can't be told
};

// `image`: PTX text, an ELF file, or a fat binary of both.
ModuleState StateOfModule(std::span<const std::byte> image);

}  // namespace worker
