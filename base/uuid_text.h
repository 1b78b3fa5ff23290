// A device's UUID as NVIDIA's tools write it: GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx.
// Thread safety: a function without state.
#pragma once

#include <cstddef>
#include <string>

namespace base {

// `bytes`: 16 of them, of any type of one byte.
template <class Byte>
std::string UuidText(const Byte* bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "GPU-";
  for (size_t i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const unsigned value = static_cast<unsigned char>(bytes[i]);
    text += {kDigits[value >> 4], kDigits[value & 15]};
  }
  return text;
}

}  // namespace base
