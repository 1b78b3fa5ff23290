// Puts an object file's code into memory: sections side by side, relocations between them. Needs no
// linker and no LLVM, so that a cached kernel runs at once. Thread safety: functions without state.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace softgpu::jit {

// Owns what `entry` lies in.
struct Loaded {
  std::shared_ptr<const void> memory;
  void* entry = nullptr;
};

// The function named `entry`. False with a reason; an object that is cut short or asks for anything
// outside itself is refused, but what its code does is the caller's responsibility.
bool LoadObject(std::string_view object, const char* entry, Loaded* loaded, std::string* error);

}  // namespace softgpu::jit
