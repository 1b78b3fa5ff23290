// Which registers an instruction reads and writes, and whether the compiler knows it: what flow
// analysis and emission have in common. Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <vector>

#include "softgpu/exec/handler_key.h"
#include "softgpu/jit/program.h"

namespace softgpu::jit {

// How a register of the frame is seen: a mask of lanes, or 32 values of a size.
enum class Kind : uint8_t { kPred, k16, k32, k64 };

inline constexpr uint32_t KindBytes(Kind kind) {
  return kind == Kind::kPred ? 4 : kind == Kind::k16 ? 2 : kind == Kind::k32 ? 4 : 8;
}

struct Place {
  uint32_t offset = 0;
  Kind kind = Kind::k32;
};

// A key of the handler tables taken apart.
struct Row {
  bool internal;
  exec::Op op;
  exec::Internal what;
  int variant;
  exec::Type type, type2;
};
Row RowOf(uint32_t key);

struct Operands {
  bool native = false;
  std::vector<Place> sources, results;
};

// Not native: `sources` is what its handler may read, by offset alone, and `results` is empty.
Operands OperandsOf(const ProgramInst& inst);

// Loads and stores of the fast rows.
struct Access {
  bool is_store, shared, narrow;  // narrow: 32-bit addresses
  uint32_t element_bytes, count;
  Kind kind;  // of the registers
  bool is_signed;
};
bool AccessOf(const Row& row, Access* access);
bool IsOrdered(const ProgramInst& i);  // a load or store that is volatile or stronger

}  // namespace softgpu::jit
