// How long a module image is that a program passes by its address alone, and what kind it is.
//
// Kinds that a driver accepts: PTX text (ends with NUL), a fat binary's wrapper (what compilers
// register with the runtime), its container, and an ELF file (cubin). Only the length is looked for
// here, from the headers that the formats begin with; the worker's driver parses and judges the
// rest. Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shim {

// The bytes to send: a wrapper's container, the text with its NUL. Empty when it is no image of
// these kinds or longer than ipc::limits::kModuleBytesMax. REQUIRES: `image` is as readable as the
// driver requires it to be.
std::span<const std::byte> FindImage(const void* image);

}  // namespace shim
