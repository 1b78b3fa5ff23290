// Loads and stores of global and shared memory. A uniform address is one access, neighbouring
// addresses are a vector's, others go lane by lane; whatever is out of bounds, misaligned or in
// another state space goes to the interpreter's handler.
#include <cstddef>
#include <numeric>

#include "ipc/calls/limits.h"
#include "softgpu/jit/llvm/emit.h"
#include "softgpu/jit/llvm/memory.h"

namespace softgpu::jit {

using exec::kLanes;
using exec::Warp;

Emitter::Value* Emitter::Offset(const Memory& m, Value* address) {
  Value* wide = b_.CreateZExt(address, Like(address, b_.getInt64Ty()));
  return b_.CreateAdd(wide, Number(wide, m.inst->imm));
}

// As Holds() of simd/memory.cc: `bytes` from `address` on, which is a multiple of one access's
// size. Rotated by that alignment, an address that isn't becomes a huge number, so that one
// comparison tells all.
Emitter::Value* Emitter::InBounds(const Memory& m, Value* address, uint64_t bytes) {
  using ipc::limits::kWindowBase, ipc::limits::kWindowEnd;
  const uint64_t shift = static_cast<uint64_t>(__builtin_ctzll(m.bytes));
  Value* offset = address;
  Value* places = nullptr;  // where the access may begin, in units of its size
  if (m.access.shared) {
    Value* last = b_.CreateLShr(b_.CreateSub(shared_bytes_, b_.getInt64(bytes)), shift);
    places = b_.CreateSelect(b_.CreateICmpUGE(shared_bytes_, b_.getInt64(bytes)),
                             b_.CreateAdd(last, b_.getInt64(1)), b_.getInt64(0));
  } else {
    static_assert(kWindowBase % 64 == 0 && kWindowEnd % 64 == 0);
    offset = b_.CreateSub(address, Number(address, kWindowBase));
    places = b_.getInt64(((kWindowEnd - kWindowBase - bytes) >> shift) + 1);
  }
  if (address->getType()->isVectorTy()) places = b_.CreateVectorSplat(kLanes, places);
  Value* rotated = b_.CreateIntrinsic(llvm::Intrinsic::fshr, {offset->getType()},
                                      {offset, offset, Number(offset, shift)});
  return b_.CreateICmpULT(rotated, places);
}

Emitter::Value* Emitter::Located(const Memory& m, Value* address) {
  if (!m.access.shared) return address;
  return b_.CreateAdd(
      address, address->getType()->isVectorTy() ? b_.CreateVectorSplat(kLanes, shared_) : shared_);
}

Emitter::Value* Emitter::Extended(const Memory& m, Value* element) {
  llvm::Type* wanted = Like(element, ScalarType(m.access.kind));
  return m.access.is_signed ? b_.CreateSExtOrTrunc(element, wanted)
                            : b_.CreateZExtOrTrunc(element, wanted);
}

Emitter::Value* Emitter::Narrowed(const Memory& m, Value* value) {
  return b_.CreateTrunc(value, Like(value, m.element));
}

// For the fault handler: where each lane goes.
void Emitter::Record(const Memory& m, Value* addresses, uint64_t stride) {
  const bool vector = addresses->getType()->isVectorTy();
  b_.CreateStore(CodeAt(m.n), WarpField(offsetof(Warp, current), b_.getInt8PtrTy()));
  b_.CreateStore(b_.getInt64(vector ? 2 : 1),
                 WarpField(offsetof(Warp, access_form), b_.getInt64Ty()));
  b_.CreateAlignedStore(addresses, WarpField(offsetof(Warp, access), addresses->getType()),
                        llvm::Align(vector ? 64 : 8));
  if (!vector) {
    b_.CreateStore(b_.getInt64(stride), WarpField(offsetof(Warp, access_stride), b_.getInt64Ty()));
  }
  if (m.guard != nullptr) b_.CreateStore(m.lanes, WarpField(offsetof(Warp, mask), b_.getInt32Ty()));
}

void Emitter::MoveScalar(const Memory& m, Value* address) {
  const Operands& o = flow_.operands[m.n];
  for (uint32_t k = 0; k < m.access.count; ++k) {
    Value* at = b_.CreateAdd(Located(m, address), b_.getInt64(k * m.access.element_bytes));
    if (!m.access.is_store) {
      Value* element = b_.CreateLoad(m.element, PointerAt(at, m.element));
      Write(m.Register(k, o), {Extended(m, element), kUniformForm}, m.guard);
      continue;
    }
    // Every lane stores there, the last one wins.
    const Result data = Read(m.Register(k, o));
    Value* value = data.value;
    if (data.form.of != Form::Of::kUniform) {
      Value* zeros = b_.CreateBinaryIntrinsic(llvm::Intrinsic::ctlz, m.lanes, b_.getFalse());
      Value* last = b_.CreateAnd(b_.CreateSub(b_.getInt32(31), zeros), b_.getInt32(31));
      value = b_.CreateExtractElement(MakeVector(data, m.access.kind), last);
    }
    b_.CreateStore(Narrowed(m, value), PointerAt(at, m.element));
  }
}

// What a store writes, lane after lane.
Emitter::Value* Emitter::Joined(const Memory& m) {
  const Operands& o = flow_.operands[m.n];
  const auto part = [&](uint32_t k) { return Narrowed(m, ReadVector(m.Register(k, o))); };
  const auto interleave = [&](Value* a, Value* b) {
    const int size =
        static_cast<int>(llvm::cast<llvm::FixedVectorType>(a->getType())->getNumElements());
    std::vector<int> order;
    for (int e = 0; e < size; ++e) {
      order.push_back(e);
      order.push_back(e + size);
    }
    return b_.CreateShuffleVector(a, b, order);
  };
  if (m.access.count == 2) return interleave(part(0), part(1));
  if (m.access.count == 4)
    return interleave(interleave(part(0), part(2)), interleave(part(1), part(3)));
  return part(0);
}

// `loaded` has the elements of all lanes, lane after lane.
void Emitter::WriteLoaded(const Memory& m, Value* loaded, Value* guard) {
  const Operands& o = flow_.operands[m.n];
  std::vector<int> pick(kLanes);
  for (uint32_t k = 0; k < m.access.count; ++k) {
    for (uint32_t lane = 0; lane < kLanes; ++lane)
      pick[lane] = static_cast<int>(lane * m.access.count + k);
    Value* element = m.access.count == 1 ? loaded : b_.CreateShuffleVector(loaded, pick);
    Write(m.Register(k, o), {Extended(m, element), kVaryingForm}, guard);
  }
}

// All lanes, `first` and on.
void Emitter::MoveContiguous(const Memory& m, Value* first) {
  llvm::Type* all = llvm::FixedVectorType::get(m.element, kLanes * m.access.count);
  Value* at = PointerAt(Located(m, first), all);
  const llvm::Align align(m.access.element_bytes);
  if (m.access.is_store) {
    b_.CreateAlignedStore(Joined(m), at, align);
  } else {
    WriteLoaded(m, b_.CreateAlignedLoad(all, at, align), nullptr);
  }
}

// Some lanes of neighbouring addresses, one element each.
void Emitter::MoveMasked(const Memory& m, Value* first) {
  const Operands& o = flow_.operands[m.n];
  llvm::Type* all = VectorOf(m.element);
  Value* at = PointerAt(Located(m, first), all);
  const llvm::Align align(m.access.element_bytes);
  if (m.access.is_store) {
    b_.CreateMaskedStore(Narrowed(m, ReadVector(m.Register(0, o))), at, align, m.lanes_vector);
    return;
  }
  Value* loaded =
      b_.CreateMaskedLoad(all, at, align, m.lanes_vector, llvm::Constant::getNullValue(all));
  Write(m.Register(0, o), {Extended(m, loaded), kVaryingForm}, m.guard);
}

void Emitter::MoveScattered(const Memory& m, Value* addresses) {
  const Operands& o = flow_.operands[m.n];
  const llvm::Align align(m.access.element_bytes);
  std::vector<Value*> loaded;
  for (uint32_t k = 0; k < m.access.count; ++k) {
    Value* located = Located(m, addresses);
    Value* at =
        b_.CreateIntToPtr(b_.CreateAdd(located, Number(located, k * m.access.element_bytes)),
                          VectorOf(m.element->getPointerTo()));
    if (m.access.is_store) {
      b_.CreateMaskedScatter(Narrowed(m, ReadVector(m.Register(k, o))), at, align, m.lanes_vector);
    } else {
      llvm::Type* all = VectorOf(m.element);
      loaded.push_back(
          b_.CreateMaskedGather(all, at, align, m.lanes_vector, llvm::Constant::getNullValue(all)));
    }
  }
  for (uint32_t k = 0; k < loaded.size(); ++k)
    Write(m.Register(k, o), {Extended(m, loaded[k]), kVaryingForm}, m.guard);
}

// Where each lane goes, in memory: scalar instructions take it from there, and the fault handler.
// Lanes that take no part go to a place of our own, which is cheaper than a branch for each.
void Emitter::RecordPlaces(const Memory& m, Value* addresses) {
  Value* nowhere = b_.CreateVectorSplat(kLanes, b_.CreatePtrToInt(nowhere_, b_.getInt64Ty()));
  Record(m, b_.CreateSelect(m.lanes_vector, Located(m, addresses), nowhere), 0);
}

Emitter::Value* Emitter::RecordedPlace(uint32_t lane, llvm::Type* type) {
  Value* at = WarpField(offsetof(Warp, access) + lane * sizeof(Warp::access[0]), b_.getInt64Ty());
  // Volatile: from memory. LLVM would take the vector apart, which costs more.
  return PointerAt(b_.CreateAlignedLoad(b_.getInt64Ty(), at, llvm::Align(8), true), type);
}

Emitter::Value* Emitter::Concatenated(std::vector<Value*> pieces) {
  while (pieces.size() > 1) {
    const auto* type = llvm::cast<llvm::FixedVectorType>(pieces[0]->getType());
    std::vector<int> both(size_t{type->getNumElements()} * 2);
    std::iota(both.begin(), both.end(), 0);
    for (size_t n = 0; n < pieces.size() / 2; ++n)
      pieces[n] = b_.CreateShuffleVector(pieces[2 * n], pieces[2 * n + 1], both);
    pieces.resize(pieces.size() / 2);
  }
  return pieces[0];
}

// One lane after another, with scalar instructions.
void Emitter::MoveByLane(const Memory& m, Value* addresses) {
  RecordPlaces(m, addresses);
  llvm::Type* piece = llvm::FixedVectorType::get(m.element, m.access.count);
  const llvm::Align align(m.bytes);
  if (m.access.is_store) {
    Value* joined = Joined(m);
    std::vector<int> pick(m.access.count);
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      std::iota(pick.begin(), pick.end(), static_cast<int>(lane * m.access.count));
      b_.CreateAlignedStore(b_.CreateShuffleVector(joined, pick), RecordedPlace(lane, piece),
                            align);
    }
    return;
  }
  std::vector<Value*> pieces;
  for (uint32_t lane = 0; lane < kLanes; ++lane)
    pieces.push_back(b_.CreateAlignedLoad(piece, RecordedPlace(lane, piece), align));
  WriteLoaded(m, Concatenated(pieces), m.guard);
}

void Emitter::AccessScalar(const Memory& m) {
  Value* address = Offset(m, m.address.value);
  llvm::BasicBlock* fast = NewBlock("one");
  Expect(InBounds(m, address, m.bytes), fast, m.slow);
  b_.SetInsertPoint(fast);
  Record(m, address, 0);
  MoveScalar(m, address);
  b_.CreateBr(m.done);
}

// Addresses that are `bytes` apart. A narrow one that wraps is out of bounds.
void Emitter::AccessLinear(const Memory& m) {
  Value* first = Offset(m, m.address.value);
  llvm::BasicBlock* near = NewBlock("near");
  llvm::BasicBlock* all = NewBlock("all");
  llvm::BasicBlock* some = NewBlock("some");
  Expect(InBounds(m, first, m.bytes * kLanes), near, m.slow);
  b_.SetInsertPoint(near);
  Record(m, first, m.bytes);
  b_.CreateCondBr(b_.CreateICmpEQ(m.lanes, b_.getInt32(exec::kFullMask)), all, some);
  b_.SetInsertPoint(all);
  MoveContiguous(m, first);
  b_.CreateBr(m.done);
  b_.SetInsertPoint(some);
  MoveMasked(m, first);
  b_.CreateBr(m.done);
}

void Emitter::AccessLanes(const Memory& m) {
  Value* addresses = Offset(m, MakeVector(m.address, m.access.narrow ? Kind::k32 : Kind::k64));
  Value* bad = b_.CreateAnd(Bits(b_.CreateNot(InBounds(m, addresses, m.bytes))), m.lanes);
  llvm::BasicBlock* good = NewBlock("good");
  llvm::BasicBlock* near = NewBlock("near");
  llvm::BasicBlock* apart = NewBlock("apart");
  Expect(b_.CreateICmpEQ(bad, b_.getInt32(0)), good, m.slow);
  b_.SetInsertPoint(good);
  // The first and the last tell nearly always.
  llvm::BasicBlock* perhaps = NewBlock("perhaps");
  Value* first = b_.CreateExtractElement(addresses, uint64_t{0});
  Value* last = b_.CreateExtractElement(addresses, uint64_t{kLanes - 1});
  Value* far = b_.CreateICmpNE(b_.CreateSub(last, first), b_.getInt64(m.bytes * (kLanes - 1)));
  Value* not_all = b_.CreateICmpNE(m.lanes, b_.getInt32(exec::kFullMask));
  b_.CreateCondBr(b_.CreateOr(far, not_all), apart, perhaps);
  b_.SetInsertPoint(perhaps);
  Value* line = b_.CreateAdd(b_.CreateVectorSplat(kLanes, first),
                             Ramp(b_.getInt64Ty(), static_cast<int64_t>(m.bytes)));
  Value* off_line = Bits(b_.CreateICmpNE(addresses, line));
  b_.CreateCondBr(b_.CreateICmpEQ(off_line, b_.getInt32(0)), near, apart);
  b_.SetInsertPoint(near);
  Record(m, first, m.bytes);
  MoveContiguous(m, first);
  b_.CreateBr(m.done);
  b_.SetInsertPoint(apart);
  LoadTogether(m, addresses);
  // Elements of 32 and 64 bits may have instructions of their own.
  if (m.access.element_bytes >= 4 && (m.access.is_store ? host_.scatters : host_.gathers)) {
    Record(m, addresses, 0);
    MoveScattered(m, addresses);
  } else {
    MoveByLane(m, addresses);
  }
  b_.CreateBr(m.done);
}

// A load whose value nobody wants still faults: LLVM would drop it.
bool Emitter::LoadsForNothing(uint32_t n) const {
  for (const Place& result : flow_.operands[n].results) {
    const uint32_t reg = flow_.Find(result);
    if (reg != Flow::kNone && flow_.live[n + 1].Has(reg)) return false;
  }
  return !flow_.operands[n].results.empty();
}

// What the instruction says of its access; it has no guard yet.
Emitter::Memory Emitter::MemoryOf(uint32_t n) {
  Memory m;
  m.n = n;
  m.inst = &flow_.program.code[n];
  AccessOf(RowOf(m.inst->key), &m.access);
  m.bytes = uint64_t{m.access.element_bytes} * m.access.count;
  m.element = b_.getIntNTy(m.access.element_bytes * 8);
  m.guard = nullptr;
  return m;
}

void Emitter::EmitAccess(uint32_t n) {
  if (LoadsForNothing(n)) return CallHandler(n);
  Memory m = MemoryOf(n);
  m.slow = NewBlock("slow");
  m.done = NewBlock("done");
  m.lanes = Mask();
  llvm::BasicBlock* end = NewBlock("end");
  TakeLoaded(m, end);
  Value* guard = GuardOf(*m.inst);
  if (guard != nullptr) {
    llvm::BasicBlock* some = NewBlock("guarded");
    Value* runs = guard;
    if (guard->getType()->isVectorTy()) {
      m.guard = guard;
      m.lanes = b_.CreateAnd(Bits(guard), Mask());
      runs = b_.CreateICmpNE(m.lanes, b_.getInt32(0));
    }
    b_.CreateCondBr(runs, some, end);
    b_.SetInsertPoint(some);
  }
  m.lanes_vector = b_.CreateBitCast(m.lanes, VectorOf(b_.getInt1Ty()));
  const Place address = flow_.operands[n].sources[0];
  m.address = Read(address);
  const bool neighbours = m.address.form.of == Form::Of::kLinear && m.access.count == 1 &&
                          static_cast<uint64_t>(m.address.form.stride) == m.bytes &&
                          m.access.element_bytes >= 4;
  if (m.address.form.of == Form::Of::kUniform) {
    AccessScalar(m);
  } else if (neighbours) {
    AccessLinear(m);
  } else {
    AccessLanes(m);
  }
  b_.SetInsertPoint(m.slow);
  CallHandler(n);
  b_.CreateBr(end);
  b_.SetInsertPoint(m.done);
  if (m.guard != nullptr) b_.CreateStore(Mask(), WarpField(offsetof(Warp, mask), b_.getInt32Ty()));
  b_.CreateBr(end);
  b_.SetInsertPoint(end);
}

}  // namespace softgpu::jit
