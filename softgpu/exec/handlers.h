// Semantic functions that need no vector code: control flow, warp-wide operations, atomics, special
// registers, built-in functions. translate*.cc puts them into Inst::run.
#pragma once

#include <string>

#include "softgpu/exec/block.h"
#include "softgpu/exec/warp.h"

namespace softgpu::exec {

// A register, by its place among those of a warp, as elements of T: one for each lane.
template <class T>
T* Reg(Warp* w, uint32_t offset) {
  return reinterpret_cast<T*>(w->regs + offset);
}

// control.cc. imm: target. guard: predicate of the conditional ones.
const Inst* Guarded(const Inst* ip, Warp* w);  // inner under guard
const Inst* Rounded(const Inst* ip, Warp* w);  // inner under MXCSR aux
const Inst* GuardedRounded(const Inst* ip, Warp* w);
const Inst* Branch(const Inst* ip, Warp* w);
const Inst* BranchBack(const Inst* ip, Warp* w);
const Inst* BranchIf(const Inst* ip, Warp* w);
const Inst* BranchIfBack(const Inst* ip, Warp* w);
const Inst* BranchWait(const Inst* ip, Warp* w);  // back to a loop that only waits for others
const Inst* BranchIfWait(const Inst* ip, Warp* w);
const Inst* BranchTable(const Inst* ip, Warp* w);  // a: index register, imm: table
const Inst* Join(const Inst* ip, Warp* w);
const Inst* Exit(const Inst* ip, Warp* w);
const Inst* Trap(const Inst* ip, Warp* w);
const Inst* Unimplemented(const Inst* ip, Warp* w);
const Inst* MemoryFence(const Inst* ip, Warp* w);
const Inst* Nothing(const Inst* ip, Warp* w);
const Inst* Yield(const Inst* ip, Warp* w);

// call.cc. imm: index into FunctionCode::calls; a: register of an indirect target.
const Inst* Call(const Inst* ip, Warp* w);
const Inst* Return(const Inst* ip, Warp* w);

// barrier_handlers.cc. a: barrier number, b: threads (0: all), c: predicate, imm: its negation.
const Inst* BarSync(const Inst* ip, Warp* w);
const Inst* BarArrive(const Inst* ip, Warp* w);
const Inst* BarRed(const Inst* ip, Warp* w);
const Inst* BarRedResult(const Inst* ip, Warp* w);  // imm: ptx::Combine

const Inst* ClusterWait(const Inst* ip, Warp* w);

// warp_operations.cc
const Inst* Shfl(const Inst* ip, Warp* w);  // d a b c e: value, lane, clamp, mask; guard: |p
const Inst* Vote(const Inst* ip, Warp* w);  // a: predicate, b: mask
const Inst* Match32(const Inst* ip, Warp* w);
const Inst* Match64(const Inst* ip, Warp* w);
const Inst* Activemask(const Inst* ip, Warp* w);
const Inst* Redux(const Inst* ip, Warp* w);
const Inst* Elect(const Inst* ip, Warp* w);
const Inst* WarpBarrier(const Inst* ip, Warp* w);

// special.cc
const Inst* ReadSpecial32(const Inst* ip, Warp* w);  // imm: ptx::Special
const Inst* ReadSpecial64(const Inst* ip, Warp* w);
const Inst* LoadParam(const Inst* ip, Warp* w);     // imm: offset; MemoryShape in aux
const Inst* LocalAddress(const Inst* ip, Warp* w);  // imm: offset in the frame's local area
const Inst* ToGeneric(const Inst* ip, Warp* w);     // imm: window to add
const Inst* IsInWindow(const Inst* ip, Warp* w);    // imm: ptx::Space
const Inst* Pack(const Inst* ip, Warp* w);    // d from a b c e; aux: element, register bytes, count
const Inst* Unpack(const Inst* ip, Warp* w);  // d b c e from a

// atomics.cc
Handler AtomicHandler(uint8_t op, ptx::Type type);  // d a b c; MemoryShape in aux; imm: offset
// The same of one element in memory.
using ElementUpdate = void (*)(std::byte* at, const std::byte* operand);
ElementUpdate AtomicElement(uint8_t op, ptx::Type type);

const Inst* StoreMatrix(const Inst* ip, Warp* w);
const Inst* TransposeMatrix(const Inst* ip, Warp* w);

// wmma.cc. a: address, b: stride; imm: offset; aux: WmmaPlan
const Inst* WmmaLoad(const Inst* ip, Warp* w);
const Inst* WmmaStore(const Inst* ip, Warp* w);
const Inst* WmmaMultiply(const Inst* ip, Warp* w);

// mbarrier.cc. a: 64-bit address, b: count, bytes, parity or state; aux: space
const Inst* MbarrierInit(const Inst* ip, Warp* w);
const Inst* MbarrierTransfer(const Inst* ip, Warp* w);  // imm: bytes have come, not are expected
const Inst* MbarrierArrive(const Inst* ip, Warp* w);    // imm: 1: expects bytes, 2: for good
const Inst* MbarrierWait(const Inst* ip, Warp* w);      // imm: 1: parity, 2: yields
const Inst* MbarrierPending(const Inst* ip, Warp* w);
const Inst* CopyBulk(const Inst* ip, Warp* w);    // a: to, b: from, c: bytes; imm: their spaces
const Inst* ReduceBulk(const Inst* ip, Warp* w);  // the same; aux: ptx::AtomOp, << 8: ptx::Type

// call.cc. aux: bytes of the registers
const Inst* Alloca(const Inst* ip, Warp* w);  // d a; imm: alignment
const Inst* StackSave(const Inst* ip, Warp* w);
const Inst* StackRestore(const Inst* ip, Warp* w);

// parts.cc: parts of registers, one lane at a time.
struct VideoPlan {
  uint8_t op;  // counted from Op::kVadd
  bool d_signed, a_signed, b_signed, saturates, wraps, plus_one;
  uint8_t combine;                 // ptx::Combine
  uint8_t mode;                    // ptx::Compare, or the shift of vmad
  uint8_t d_part, a_part, b_part;  // 0: all; 1-4: a byte; 5, 6: a half
};
uint64_t PackVideo(const VideoPlan& plan);
Handler VideoHandler(ptx::Op op);
const Inst* PackSaturated(const Inst* ip, Warp* w);  // d a b c; imm: bits, 256: signed

// memory_access.cc
const Inst* CheckAlignment(const Inst* ip,
                           Warp* w);             // a: address, imm: offset; c: bytes; MemoryShape
const Inst* FillZero(const Inst* ip, Warp* w);   // a: shared address, b: bytes; MemoryShape, imm
const Inst* AccessAny(const Inst* ip, Warp* w);  // the general ld and st
const Inst* CopyAsync(const Inst* ip,
                      Warp* w);  // a: shared, b: global, c: source bytes; imm: offsets

// mma.cc
const Inst* Mma(const Inst* ip, Warp* w);
const Inst* LoadMatrix(const Inst* ip, Warp* w);

// texture_access.cc. aux: index into FunctionCode::textures; data in d, b, c, e
const Inst* TextureFetch(const Inst* ip, Warp* w);
const Inst* SurfaceLoad(const Inst* ip, Warp* w);
const Inst* SurfaceStore(const Inst* ip, Warp* w);
const Inst* TextureSize(const Inst* ip, Warp* w);  // d from the object a; imm: ptx::TextureQuery
const Inst* SurfaceSize(const Inst* ip, Warp* w);

// fault.cc: records what stopped the launch for the lowest running lane, or `lane`; always null.
const Inst* RaiseFault(const Inst* ip, Warp* w, int lane, CUresult code, std::string what,
                       uint64_t address = 0);

}  // namespace softgpu::exec
