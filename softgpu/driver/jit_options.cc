#include "softgpu/driver/jit_options.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace softgpu {

void** JitOptions::Find(CUjit_option option) const {
  for (unsigned i = 0; i < count_; ++i) {
    if (options_[i] == option) return &values_[i];
  }
  return nullptr;
}

// The size option holds the buffer's size on entry and the bytes written on return, both as the
// value itself.
void JitOptions::WriteLog(CUjit_option buffer, CUjit_option size, std::string_view text) const {
  void** const buffer_value = Find(buffer);
  void** const size_value = Find(size);
  if (buffer_value == nullptr || *buffer_value == nullptr || size_value == nullptr) return;
  const size_t capacity = static_cast<unsigned>(reinterpret_cast<uintptr_t>(*size_value));
  if (capacity == 0) return;
  const size_t written = std::min(text.size(), capacity - 1);
  std::memcpy(*buffer_value, text.data(), written);
  static_cast<char*>(*buffer_value)[written] = '\0';
  *size_value = reinterpret_cast<void*>(written == 0 ? uintptr_t{0} : written + 1);
}

void JitOptions::WriteWallTime(float milliseconds) const {
  void** const value = Find(CU_JIT_WALL_TIME);
  if (value == nullptr) return;
  *value = nullptr;
  std::memcpy(value, &milliseconds, sizeof milliseconds);
}

}  // namespace softgpu
