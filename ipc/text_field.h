// Texts of a fixed size inside messages. Thread safety: a function without state.
#pragma once

#include <cstddef>
#include <string_view>

namespace ipc::control {

// Copies with truncation; always zero-terminated.
template <size_t kBytes>
void SetText(char (&to)[kBytes], std::string_view from) {
  const size_t length = from.size() < kBytes - 1 ? from.size() : kBytes - 1;
  for (size_t i = 0; i < length; ++i) to[i] = from[i];
  to[length] = '\0';
}

}  // namespace ipc::control
