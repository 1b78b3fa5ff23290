// NumPy's .npy files: one array, its type and shape in a short text before the bytes. Read are
// versions 1 to 3, in C order and little-endian; written is version 1.
//
// Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "functions/function.h"
#include "functions/manifest.h"

namespace functions {

struct Array {
  TensorType type;  // without a name
  Bytes bytes;
};

// False: `why` is a sentence's end, such as "is no .npy file".
bool DecodeNpyUntrusted(std::span<const std::byte> file, Array* array, std::string* why);
Bytes EncodeNpy(const TensorType& type, std::span<const std::byte> bytes);

}  // namespace functions
