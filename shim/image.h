// The kind and the length of a module image, which a program passes by its address alone.
//
// Kinds that a driver accepts: PTX text (ends with NUL), a fat binary's wrapper (compilers register
// wrappers with the runtime), a fat binary's container, and an ELF file (cubin). This file reads
// the length from the headers with which the formats begin; the worker's driver parses and judges
// the rest. Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace shim {

// An image is sent in pieces, so that one message has room for each.
inline constexpr size_t kImagePieceBytes = 60u << 10;

// The bytes to send: a wrapper's container, the text with its NUL. Empty when it is no image of
// these kinds or longer than ipc::limits::kModuleBytesMax. REQUIRES: `image` is as readable as the
// driver requires it to be.
std::span<const std::byte> FindImage(const void* image);

}  // namespace shim
