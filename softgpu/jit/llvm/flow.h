// What the compiler knows of a program before it emits code: registers, which of them hold one
// value for the whole warp, where code may be entered, what must be in the frame when it is left.
//
// Uniformity is a guess that entries verify: a register is taken as uniform (or as counting up with
// the lanes) when all its definitions are so and no divergent branch could mix two of them. All
// lanes that enter compiled code stay together until they leave it, so the guess, once true,
// remains so.
#pragma once

#include <map>

#include "softgpu/jit/llvm/operands.h"

namespace softgpu::jit {

// How a value depends on the lane.
struct Form {
  enum class Of : uint8_t { kUnknown, kUniform, kLinear, kVarying } of = Of::kUnknown;
  int64_t stride = 0;  // kLinear: value = base + lane * stride
  bool operator==(const Form&) const = default;
  bool Varies() const { return of == Of::kVarying; }
};
inline constexpr Form kUniformForm{Form::Of::kUniform, 0};
inline constexpr Form kVaryingForm{Form::Of::kVarying, 0};
Form Linear(int64_t stride);
Form Combine(Form a, Form b);  // where either may be

// A set of registers.
class Set {
 public:
  explicit Set(size_t size = 0) : words_((size + 63) / 64) {}
  void Add(uint32_t n) { words_[n / 64] |= uint64_t{1} << (n % 64); }
  void Remove(uint32_t n) { words_[n / 64] &= ~(uint64_t{1} << (n % 64)); }
  bool Has(uint32_t n) const { return (words_[n / 64] >> (n % 64) & 1) != 0; }
  bool Merge(const Set& other);  // true when it grew
  void Fill() { words_.assign(words_.size(), ~uint64_t{0}); }

 private:
  std::vector<uint64_t> words_;
};

class Flow {
 public:
  explicit Flow(const Program& program);

  static constexpr uint32_t kNone = ~0u;
  const Program& program;
  std::vector<Place> registers;
  std::vector<Form> forms;             // of registers
  std::vector<Operands> operands;      // of instructions
  std::vector<Set> live;               // before each instruction
  std::vector<Set> dirty;              // before each: newer in a value than in the frame
  std::vector<bool> leaders, entries;  // of instructions
  uint32_t Find(Place place) const;    // kNone: a constant, or never seen by native code
  std::vector<uint32_t> At(uint32_t offset) const;
  Form FormOf(Place place) const;
  Form ResultForm(uint32_t n) const;  // of a native instruction's results, its guard aside
  bool Diverges(uint32_t n) const;    // a conditional branch on a varying predicate
  const ProgramConstant* ConstantAt(uint32_t offset) const;
  bool IsConstant(uint32_t offset) const { return offset >= program.constants_begin; }
  std::vector<uint32_t> Successors(uint32_t n) const;  // in the interpreter's eyes
  bool Leaves(uint32_t n) const;                       // always goes back to the interpreter
  // A shfl.sync of the whole warp by a fixed pattern.
  bool ShufflesByPattern(uint32_t n) const;

 private:
  void FindRegisters();
  void FindForms();
  bool SpreadForms();
  bool MixAtJoins();
  bool Raise(uint32_t reg, Form form);
  void FindPostDominators();
  void FindEntries();
  void FindLive();
  void FindDirty();
  Set Reads(uint32_t n) const;

  std::map<std::pair<uint32_t, Kind>, uint32_t> index_;
  std::map<uint32_t, const ProgramConstant*> constants_;
  std::vector<uint32_t> post_dominator_;  // of instructions; kNone: the end
};

}  // namespace softgpu::jit
