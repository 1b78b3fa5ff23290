// What is to be compiled: the interpreter's instructions of one function, with their handlers
// replaced by what they mean. Both executors share one lowering, so they can differ only in how an
// instruction is done. A value: whoever has it may read it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace softgpu::jit {

// How the compiler treats an instruction.
enum class Step : uint8_t {
  kRow,        // a row of the handler tables: `key` says which
  kBranch,     // to `target`
  kBranchIf,   // to `target` under the guard
  kWait,       // as kLeave, but to `target` or on: a loop goes round that only waits for others
  kJoin,       // diverged lanes may meet here
  kSpecial,    // imm: ptx::Special
  kParameter,  // ld.param of a kernel
  kShuffle,    // shfl.sync
  kCall,       // any other handler that goes on with the next instruction, whatever it does to `d`
  kCallWide,   // as kCall, and b, c and e may be results too
  kLeave,      // its handler may do anything with control, nothing with registers but d, b, c, e
  kLeaveWild,  // ... and with every register
  kBarrier,    // as kLeave: bar.sync of the whole block
  kEnd,        // as kLeave, and never goes on
  kExit,       // as kEnd: the lanes end
};

struct ProgramInst {
  Step step = Step::kLeaveWild;
  uint8_t guarded = 0;  // runs for the lanes of `guard` only
  uint32_t key = 0;
  uint32_t d = 0, a = 0, b = 0, c = 0, e = 0;
  uint32_t guard = 0;  // offset of a predicate; lowest bit: negated
  uint64_t imm = 0;
  uint32_t aux = 0;
  uint32_t target = 0;
};

// The same value in all lanes, known now or only when the kernel is launched.
struct ProgramConstant {
  uint32_t offset = 0, bytes = 0;
  uint64_t bits = 0;
  bool known = false;
};

struct Program {
  uint32_t constants_begin = 0;  // offsets in the frame from here on
  std::vector<ProgramInst> code;
  std::vector<ProgramConstant> constants;
  std::vector<std::vector<uint32_t>> tables;  // targets of kLeave instructions that are brx.idx
  bool linear = false;  // neighbouring lanes have neighbouring %tid.x, and equal %tid.y, %tid.z
};

struct Compiled {
  std::vector<uint32_t> entries;  // instructions where the code may be entered
  std::string object;             // ELF relocatable; defines kEntryName
};

inline constexpr const char* kEntryName = "softgpu_kernel";
// What the compiler plugin exports. False with a reason when it can't.
using CompileFunction = bool (*)(const Program& program, Compiled* out, std::string* error);
inline constexpr const char* kCompileName = "SoftgpuJitCompile_3";
// Whether LLVM may still be at work while the process exits: nothing of it is destroyed then.
using OutlivesExitFunction = bool (*)();
inline constexpr const char* kOutlivesExitName = "SoftgpuJitOutlivesExit";

}  // namespace softgpu::jit
