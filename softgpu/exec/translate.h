// Lowers one PTX function to Inst. Internal to softgpu/exec; code.h has the entry point.
//
// One PTX instruction becomes one Inst wherever it can; the rest goes through temporaries. A guard
// wraps every Inst of an arithmetic or memory instruction; control flow and warp-wide instructions
// under a guard become a branch around them, so that waiting needs no special case. Thread safety:
// none.
#pragma once

#include <map>
#include <tuple>
#include <vector>

#include "softgpu/exec/code.h"
#include "softgpu/exec/handler_key.h"
#include "softgpu/exec/handlers.h"
#include "softgpu/exec/parameter_addresses.h"

namespace softgpu::exec {

class FunctionTranslator {
 public:
  FunctionTranslator(KernelCode* kernel, FunctionCode* out);
  void Run();

 private:
  // Where an access goes: base register, its width, constant offset, space.
  struct Place {
    uint32_t reg = 0;
    bool narrow = false;
    uint64_t offset = 0;
    ptx::Space space = ptx::Space::kGeneric;
    bool kernel_param = false;  // a constant offset in the parameters
  };

  // Places of one size for results between an instruction's Insts.
  struct Temps {
    std::vector<uint32_t> places;
    size_t used = 0;
  };

  // translate.cc: frame, operands, emission.
  void PlaceRegisters();
  void Finish();
  void TranslateOne(const ptx::Instruction& i);
  bool TranslateSimple(const ptx::Instruction& i);
  uint32_t RegisterBytes(const ptx::Operand& operand, uint32_t otherwise) const;
  uint32_t Source(const ptx::Operand& operand, uint32_t bytes);
  uint32_t Dest(const ptx::Operand& operand) const;
  uint32_t Constant(uint32_t bytes, uint64_t bits, uint32_t variable = ptx::kNoIndex);
  uint32_t Temp(uint32_t bytes);
  uint32_t SymbolAddress(const ptx::Operand& operand);  // 8 bytes
  const ptx::Symbol& SymbolOf(const ptx::Operand& operand) const;
  Inst& Emit(Handler handler, uint32_t d = 0, uint32_t a = 0, uint32_t b = 0, uint32_t c = 0);
  void SetRounding(Inst* inst, uint32_t mxcsr);
  uint32_t Mxcsr(const ptx::Instruction& i) const;
  void BeginControl(const ptx::Instruction& i);
  void EndControl(const ptx::Instruction& i);

  // translate_arithmetic.cc
  void Arithmetic(const ptx::Instruction& i);
  void Arithmetic(const ptx::Instruction& i, uint32_t d);
  void SetPredicate(const ptx::Instruction& i);
  void Compare(const ptx::Instruction& i, uint32_t d, int half);
  void CombineWith(const ptx::Instruction& i, uint32_t d, uint32_t result, bool negated);
  void SetValue(const ptx::Instruction& i);
  void Carry(const ptx::Instruction& i);
  void Logic3(const ptx::Instruction& i);
  void OfPairs(const ptx::Instruction& i);
  void OfThree(const ptx::Instruction& i);

  // translate_move.cc
  void Move(const ptx::Instruction& i);
  void MoveVector(const ptx::Instruction& i);
  void MoveSymbol(const ptx::Instruction& i);
  void MoveSpecial(const ptx::Instruction& i);
  void Cvta(const ptx::Instruction& i);

  // translate_convert.cc
  void Convert(const ptx::Instruction& i);
  void ConvertInteger(uint32_t d, uint32_t d_bytes, Type to, uint32_t a, uint32_t a_bytes,
                      Type from, bool saturate);
  uint32_t ConvertToFloat(const ptx::Instruction& i, uint32_t a, uint32_t a_bytes, Type* from);
  void ConvertFloatToInteger(const ptx::Instruction& i, uint32_t a, Type from);
  void ConvertFloatToFloat(const ptx::Instruction& i, uint32_t a, Type from);
  void ConvertPair(const ptx::Instruction& i);
  uint32_t ReluBefore(const ptx::Instruction& i, uint32_t a, Type type);

  // translate_memory.cc
  Place PlaceOf(const ptx::Instruction& i, const ptx::Operand& address);
  void LoadStore(const ptx::Instruction& i);
  void LoadStoreElements(const ptx::Instruction& i, Place place, MemoryShape shape,
                         const std::vector<uint32_t>& registers,
                         const std::vector<uint32_t>& widths);
  void CheckVector(Place* place, MemoryShape shape, uint32_t bytes);
  void ZeroShared(const ptx::Instruction& i);
  void Atomic(const ptx::Instruction& i);
  void AsyncCopy(const ptx::Instruction& i);
  void EmitAccess(const Place& place, Handler fast, MemoryShape shape, const uint32_t registers[4],
                  bool atomic);
  void CheckBefore(const Place& place, MemoryShape shape, const uint32_t registers[4], bool atomic);

  // translate_texture.cc
  void TextureAccess(const ptx::Instruction& i);
  void TextureSizeOf(const ptx::Instruction& i);

  // translate_control.cc
  void Jump(const ptx::Instruction& i);
  void CallFunction(const ptx::Instruction& i);
  void BlockBarrier(const ptx::Instruction& i);
  void WarpOperation(const ptx::Instruction& i);

  // translate_matrix.cc
  void Matrix(const ptx::Instruction& i);
  void Wmma(const ptx::Instruction& i);
  void PlaceFragment(const ptx::Operand& operand, uint32_t* registers) const;

  // translate_async.cc
  uint32_t EffectiveAddress(const ptx::Instruction& i, const ptx::Operand& address, Place* place);
  void Asynchronous(const ptx::Instruction& i);
  void Mbarrier(const ptx::Instruction& i);
  void BulkCopy(const ptx::Instruction& i);
  void AsyncAccess(const ptx::Instruction& i);
  void Transferred(const ptx::Instruction& i, const ptx::Operand& address, uint32_t bytes);
  void Stack(const ptx::Instruction& i);
  void Video(const ptx::Instruction& i);

  const ptx::Operand* Operands(const ptx::Instruction& i) const { return f_.Operands(i); }

  KernelCode* kernel_;
  FunctionCode* out_;
  const ptx::Function& f_;
  uint32_t cursor_ = 0;
  uint32_t sink_ = 0, carry_ = 0, local_base_ = 0;
  std::vector<uint32_t> offset_of_;  // registers
  const std::vector<uint64_t> parameter_addresses_;
  std::vector<uint32_t> start_of_;  // instructions: index in code
  std::map<std::tuple<uint32_t, uint64_t, uint32_t>, uint32_t> constants_;
  uint32_t constants_bytes_ = 0;
  std::map<uint32_t, Temps> temps_;  // by bytes
  struct JumpTo {
    uint32_t code;          // index
    uint32_t from, target;  // instructions
  };
  std::vector<JumpTo> jumps_;
  // Of the instruction being translated:
  uint32_t guard_ = 0;
  bool guarded_ = false;
  int line_ = 0;
  uint32_t skip_ = 0;  // the branch around a guarded control instruction
};

// Fields of Inst that hold frame offsets carry this mark until the constants have their place.
inline constexpr uint32_t kConstantMark = 0x8000'0000;

}  // namespace softgpu::exec
