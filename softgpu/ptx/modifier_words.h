// The words that may follow an instruction's name: which class each belongs to and what it sets.
// Thread safety: everything here is constant.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace softgpu::ptx {

// Which field of Instruction a modifier word sets.
enum class Field : uint8_t { kRounding, kFlag, kMode, kCombine, kSpace, kVector, kNothing };

struct Word {
  uint64_t modifier_class;  // of ModifierClass
  std::string_view text;
  Field field;
  uint32_t value;
};

std::span<const Word> Words();

}  // namespace softgpu::ptx
