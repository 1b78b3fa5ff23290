// The file of a recorded function.
//
//     magic, version, checksum (XXH3-64 of all that follows), hashes of the call tables, then the
//     members of Function in order: counts and sizes as 64-bit numbers, bytes as they are
//
// The calls in it have the form that client and worker exchange, so a file is good for the builds
// whose tables of calls begin alike. The checksum finds damage; what a file says is checked again
// where it is used: nothing here is trusted to be a function that makes sense.
//
// Bounded by limits::kFunction*. Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "functions/function.h"

namespace functions {

Bytes EncodeFunction(const Function& function);

// False: `why` is a sentence's end that says what is wrong ("is cut short; record it again").
bool DecodeFunctionUntrusted(std::span<const std::byte> file, Function* function, std::string* why);

}  // namespace functions
