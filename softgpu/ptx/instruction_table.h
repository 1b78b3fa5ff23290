// The rows of instructions.inc as data, and how a mnemonic ("ld.global.nc.v4.f32") is read against
// them. Thread safety: everything here is constant.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "softgpu/ptx/ir.h"

namespace softgpu::ptx {

// Classes of modifiers that a row allows.
enum ModifierClass : uint32_t {
  kmRounding = 1 << 0,
  kmFtz = 1 << 1,
  kmSat = 1 << 2,
  kmCarry = 1 << 3,
  kmMulMode = 1 << 4,
  kmRelu = 1 << 5,
  kmNan = 1 << 6,
  kmApprox = 1 << 7,
  kmShiftAmount = 1 << 8,
  kmTest = 1 << 9,
  kmCompare = 1 << 10,
  kmCombine = 1 << 11,
  kmShf = 1 << 12,
  kmPrmt = 1 << 13,
  kmTo = 1 << 14,
  kmSpace = 1 << 15,
  kmMemory = 1 << 16,  // cache operators, ordering, scopes
  kmVector = 1 << 17,
  kmAtom = 1 << 18,
  kmNoFtz = 1 << 19,
  kmFence = 1 << 20,
  kmAsync = 1 << 21,
  kmSync = 1 << 22,
  kmShfl = 1 << 23,
  kmVote = 1 << 24,
  kmMma = 1 << 25,
  kmUni = 1 << 26,
  kmBar = 1 << 27,
  kmMask = 1 << 28,  // words that mean nothing here
};

struct Row {
  std::string_view name;
  Op op;
  std::string_view signature;
  uint32_t modifiers;
  std::string_view types;
  std::string_view summary;
};

std::span<const Row> Rows();  // in the order of Op
inline const Row& RowOf(Op op) { return Rows()[static_cast<size_t>(op)]; }

// Fills op, type, modifiers of `out`. Returns what is wrong, empty when nothing is.
std::string ReadMnemonic(std::string_view mnemonic, Instruction* out);

}  // namespace softgpu::ptx
