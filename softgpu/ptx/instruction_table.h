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
enum ModifierClass : uint64_t {
  kmRounding = 1ull << 0,
  kmFtz = 1ull << 1,
  kmSat = 1ull << 2,
  kmCarry = 1ull << 3,
  kmMulMode = 1ull << 4,
  kmRelu = 1ull << 5,
  kmNan = 1ull << 6,
  kmApprox = 1ull << 7,
  kmShiftAmount = 1ull << 8,
  kmTest = 1ull << 9,
  kmCompare = 1ull << 10,
  kmCombine = 1ull << 11,
  kmShf = 1ull << 12,
  kmPrmt = 1ull << 13,
  kmTo = 1ull << 14,
  kmSpace = 1ull << 15,
  kmMemory = 1ull << 16,  // cache operators, ordering, scopes
  kmVector = 1ull << 17,
  kmAtom = 1ull << 18,
  kmNoFtz = 1ull << 19,
  kmFence = 1ull << 20,
  kmAsync = 1ull << 21,
  kmSync = 1ull << 22,
  kmShfl = 1ull << 23,
  kmVote = 1ull << 24,
  kmMma = 1ull << 25,
  kmUni = 1ull << 26,
  kmBar = 1ull << 27,
  kmMask = 1ull << 28,  // words that mean nothing here
  kmClamp = 1ull << 29,
  kmXorsign = 1ull << 30,
  kmPolicy = 1ull << 31,
  kmCluster = 1ull << 32,
  kmIntegral = 1ull << 33,
  kmFinite = 1ull << 34,
  kmWide = 1ull << 35,
  kmFull = 1ull << 36,
  kmDependents = 1ull << 37,
  kmRegisters = 1ull << 38,
  kmGeometry = 1ull << 39,
  kmQuery = 1ull << 40,
  kmSurface = 1ull << 41,
  kmNoinc = 1ull << 42,
  kmBulk = 1ull << 43,
  kmArrive = 1ull << 44,
  kmParity = 1ull << 45,
  kmWmma = 1ull << 46,
  kmPopc = 1ull << 47,
  kmVideo = 1ull << 48,
  kmVideoSum = 1ull << 49,
  kmVmad = 1ull << 50,
  kmTransfer = 1ull << 51,  // tells an mbarrier its bytes
  kmGroups = 1ull << 52,
  kmComponent = 1ull << 53,
};

struct Row {
  std::string_view name;
  Op op;
  std::string_view signature;
  uint64_t modifiers;
  std::string_view types;
  std::string_view summary;
};

// What the table says of instructions that a module may not use: all of one (no words), or its
// forms with one of these words.
struct Refusal {
  std::string_view name;
  std::string_view words;
  std::string_view reason;
};

std::span<const Row> Rows();  // in the order of Op
inline const Row& RowOf(Op op) { return Rows()[static_cast<size_t>(op)]; }

std::span<const Refusal> Refusals();

// Fills op, type, modifiers of `out`. Returns what is wrong, empty when nothing is.
std::string ReadMnemonic(std::string_view mnemonic, Instruction* out);

}  // namespace softgpu::ptx
