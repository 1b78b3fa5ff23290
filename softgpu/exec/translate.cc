#include "softgpu/exec/translate.h"

#include <cstring>

#include "base/mutex.h"
#include "softgpu/exec/waiting_loops.h"

namespace softgpu::exec {

using ptx::Function;
using ptx::Instruction;
using ptx::Operand;
using ptx::Space;
using ptx::Symbol;

namespace {

uint32_t StorageBytes(Type type) {
  const uint32_t bits = ptx::Bits(type);
  return bits <= 16 ? 2 : bits / 8;
}

}  // namespace

FunctionTranslator::FunctionTranslator(KernelCode* kernel, FunctionCode* out)
    : kernel_(kernel), out_(out), f_(*out->source), parameter_addresses_(ParameterAddresses(f_)) {}

// The frame: 64 bytes that no register has (offset 0 means "none"), a slot for results nobody
// wants, the carry flag, then registers.
void FunctionTranslator::PlaceRegisters() {
  cursor_ = 64;
  sink_ = cursor_;
  cursor_ += 512;
  carry_ = cursor_;
  cursor_ += 64;
  uint32_t predicates = 0;
  offset_of_.resize(f_.registers.size());
  for (size_t r = 0; r < f_.registers.size(); ++r) {
    if (f_.registers[r] == Type::kPred) {
      if (predicates % 64 == 0) {
        predicates = cursor_;
        cursor_ += 64;
      }
      offset_of_[r] = predicates;
      predicates += 4;
    } else {
      offset_of_[r] = cursor_;
      cursor_ += StorageBytes(f_.registers[r]) * kLanes;
    }
  }
}

uint32_t FunctionTranslator::Temp(uint32_t bytes) {
  Temps& temps = temps_[bytes];
  if (temps.used == temps.places.size()) {
    temps.places.push_back(cursor_);
    cursor_ += std::max<uint32_t>(bytes * kLanes, 64);
  }
  return temps.places[temps.used++];
}

uint32_t FunctionTranslator::Constant(uint32_t bytes, uint64_t bits, uint32_t variable) {
  const auto [it, added] = constants_.emplace(std::tuple(bytes, bits, variable), constants_bytes_);
  if (added) {
    out_->constants.push_back({constants_bytes_, bytes, bits, variable});
    constants_bytes_ += bytes * kLanes;
  }
  return it->second | kConstantMark;
}

uint32_t FunctionTranslator::RegisterBytes(const Operand& operand, uint32_t otherwise) const {
  if (operand.kind != Operand::Kind::kRegister) return std::max<uint32_t>(otherwise, 2);
  return StorageBytes(f_.registers[operand.index]);
}

uint32_t FunctionTranslator::Source(const Operand& operand, uint32_t bytes) {
  switch (operand.kind) {
    case Operand::Kind::kRegister:
      return offset_of_[operand.index];
    case Operand::Kind::kImmediate:
      return Constant(std::max<uint32_t>(bytes, 2), operand.bits);
    case Operand::Kind::kSpecial: {
      const ptx::Special special = static_cast<ptx::Special>(operand.index);
      const uint32_t width = ptx::Bits(special) / 8;
      const uint32_t value = Temp(width);
      Emit(width == 8 ? ReadSpecial64 : ReadSpecial32, value).imm = operand.index;
      if (width == bytes) return value;
      const uint32_t wider = Temp(bytes);
      ConvertInteger(wider, bytes, Type::kU64, value, width, Type::kU32, false);
      return wider;
    }
    default:
      return sink_;
  }
}

uint32_t FunctionTranslator::Dest(const Operand& operand) const {
  return operand.kind == Operand::Kind::kRegister ? offset_of_[operand.index] : sink_;
}

const Symbol& FunctionTranslator::SymbolOf(const Operand& operand) const {
  return operand.module_scope ? kernel_->kernel->module().symbols[operand.index]
                              : f_.symbols[operand.index];
}

Inst& FunctionTranslator::Emit(Handler handler, uint32_t d, uint32_t a, uint32_t b, uint32_t c) {
  Inst inst;
  inst.run = handler == nullptr ? Unimplemented : handler;
  inst.d = d;
  inst.a = a;
  inst.b = b;
  inst.c = c;
  inst.line = line_;
  if (guarded_) {
    inst.inner = inst.run;
    inst.run = Guarded;
    inst.guard = guard_;
  }
  out_->code.push_back(inst);
  return out_->code.back();
}

void FunctionTranslator::SetRounding(Inst* inst, uint32_t mxcsr) {
  if (mxcsr == 0) return;
  inst->aux = mxcsr;
  if (guarded_) {
    inst->run = GuardedRounded;
  } else {
    inst->inner = inst->run;
    inst->run = Rounded;
  }
}

// 0 when the default does.
uint32_t FunctionTranslator::Mxcsr(const Instruction& i) const {
  uint32_t bits = 0;
  switch (i.rounding) {
    case ptx::Rounding::kRm:
      bits = 0x2000;
      break;
    case ptx::Rounding::kRp:
      bits = 0x4000;
      break;
    case ptx::Rounding::kRz:
      bits = 0x6000;
      break;
    default:
      break;
  }
  if (i.Has(ptx::kFtz)) bits |= 0x8040;  // results and operands
  return bits == 0 ? 0 : bits | 0x1f80;
}

// "@p control" becomes "@!p bra after; control; after:".
void FunctionTranslator::BeginControl(const Instruction& i) {
  guarded_ = false;
  skip_ = 0;
  if (i.guard == ptx::kNoIndex) return;
  skip_ = static_cast<uint32_t>(out_->code.size());
  Inst& branch = Emit(BranchIf);
  branch.guard = guard_ ^ 1;
}

void FunctionTranslator::EndControl(const Instruction& i) {
  if (i.guard == ptx::kNoIndex) return;
  out_->code[skip_].imm = out_->code.size();  // becomes a pointer in Finish()
  Emit(Join);
}

void FunctionTranslator::TranslateOne(const Instruction& i) {
  line_ = i.line;
  guarded_ = i.guard != ptx::kNoIndex;
  guard_ = guarded_ ? offset_of_[i.guard] | i.guard_negated : 0;
  for (auto& [bytes, temps] : temps_) temps.used = 0;
  switch (i.op) {
    case Op::kSetp:
      return SetPredicate(i);
    case Op::kSet:
      return SetValue(i);
    case Op::kAddc:
    case Op::kSubc:
    case Op::kMadc:
      return Carry(i);
    case Op::kMov:
      return Move(i);
    case Op::kCvt:
      return Convert(i);
    case Op::kCvta:
      return Cvta(i);
    case Op::kLop3:
      return i.combine == ptx::Combine::kNone ? Arithmetic(i) : Logic3(i);
    case Op::kLd:
    case Op::kLdu:
    case Op::kSt:
      return LoadStore(i);
    case Op::kAtom:
    case Op::kRed:
      return Atomic(i);
    case Op::kCpAsync:
      return AsyncCopy(i);
    case Op::kTex:
    case Op::kTld4:
    case Op::kSuld:
    case Op::kSust:
      return TextureAccess(i);
    case Op::kTxq:
    case Op::kSuq:
      return TextureSizeOf(i);
    case Op::kShfl:
    case Op::kVote:
    case Op::kMatch:
    case Op::kRedux:
    case Op::kElect:
    case Op::kBarWarp:
      return WarpOperation(i);
    case Op::kBar:
    case Op::kBarrier:
    case Op::kBarrierCluster:
      return BlockBarrier(i);
    case Op::kBra:
    case Op::kBrx:
    case Op::kRet:
    case Op::kExit:
    case Op::kTrap:
    case Op::kBrkpt:
    case Op::kNanosleep:
      return Jump(i);
    case Op::kCall:
      return CallFunction(i);
    default:
      if (i.op >= Op::kAlloca && i.op <= Op::kStackrestore) return Stack(i);
      if (i.op >= Op::kMma && i.op <= Op::kMovmatrix) return Matrix(i);
      if (i.op >= Op::kWmmaLoadA && i.op <= Op::kWmmaMma) return Wmma(i);
      if (i.op >= Op::kCpAsyncMbarrier && i.op <= Op::kMbarrierPendingCount) return Asynchronous(i);
      if (i.op >= Op::kVadd && i.op <= Op::kVset4) return Video(i);
      if (!TranslateSimple(i)) i.Has(ptx::kCarryOut) ? Carry(i) : Arithmetic(i);
  }
}

// What one handler does without further ado; false for everything else.
bool FunctionTranslator::TranslateSimple(const Instruction& i) {
  switch (i.op) {
    case Op::kIsspacep: {
      const uint32_t a = Source(Operands(i)[1], 8);
      Emit(IsInWindow, Dest(Operands(i)[0]), a).imm = static_cast<uint64_t>(i.space);
      return true;
    }
    case Op::kMembar:
    case Op::kFence:
      Emit(MemoryFence);
      return true;
    case Op::kMapa: {
      const bool wide = ptx::Bits(i.type) == 64;
      const Operand& address = Operands(i)[1];
      const uint32_t a = address.kind == Operand::Kind::kSymbol ? SymbolAddress(address)
                                                                : Source(address, wide ? 8 : 4);
      Emit(FindHandlerBySize(Op::kMov, i.type), Dest(Operands(i)[0]), a);
      return true;
    }
    case Op::kGetctarank:
      Emit(FindHandler(Key(Internal::kBroadcast, Type::kU32)), Dest(Operands(i)[0]));
      return true;
    case Op::kCreatepolicy:
      Emit(FindHandler(Key(Internal::kBroadcast, Type::kU64)), Dest(Operands(i)[0]));
      return true;
    case Op::kCvtPack: {
      const Operand* o = Operands(i);
      const uint32_t a = Source(o[1], 4), b = Source(o[2], 4);
      Inst& inst = Emit(PackSaturated, Dest(o[0]), a, b, i.count > 3 ? Source(o[3], 4) : a);
      inst.imm = ptx::Bits(i.type) | (ptx::IsSigned(i.type) ? 256 : 0);
      return true;
    }
    case Op::kStBulk:
      ZeroShared(i);
      return true;
    case Op::kApplypriority:
    case Op::kDiscard:
    case Op::kSetmaxnreg:
    case Op::kPrefetch:
    case Op::kPrefetchu:
    case Op::kPmevent:
    case Op::kGriddepcontrol:
      Emit(Nothing);
      return true;
    case Op::kActivemask:
      Emit(Activemask, Dest(Operands(i)[0]));
      return true;
    default:
      return false;
  }
}

void FunctionTranslator::Run() {
  PlaceRegisters();
  local_base_ = Temp(8);
  if (f_.entry) {
    local_base_ = Constant(8, 0);
  } else {
    Emit(LocalAddress, local_base_);
    temps_.clear();  // keeps its place for good
  }
  start_of_.resize(f_.instructions.size() + 1);
  for (size_t n = 0; n < f_.instructions.size(); ++n) {
    start_of_[n] = static_cast<uint32_t>(out_->code.size());
    guarded_ = false;
    line_ = f_.instructions[n].line;
    if (f_.reconverges[n]) Emit(Join);
    TranslateOne(f_.instructions[n]);
  }
  guarded_ = false;
  start_of_[f_.instructions.size()] = static_cast<uint32_t>(out_->code.size());
  Emit(Return);
  Finish();
}

void FunctionTranslator::Finish() {
  out_->constants_offset = (cursor_ + 63) / 64 * 64;
  out_->frame_bytes = out_->constants_offset + constants_bytes_;
  const auto place = [&](uint32_t* field) {
    if ((*field & kConstantMark) != 0) *field = (*field & ~kConstantMark) + out_->constants_offset;
  };
  const std::vector<bool> waits = WaitingLoops(f_);
  for (const JumpTo& jump : jumps_) {
    Inst& inst = out_->code[jump.code];
    inst.imm = start_of_[jump.target];
    if (waits[jump.from]) inst.run = inst.run == Branch ? BranchWait : BranchIfWait;
  }
  for (size_t n = 0; n < out_->code.size(); ++n) {
    Inst& inst = out_->code[n];
    for (uint32_t* field : {&inst.d, &inst.a, &inst.b, &inst.c, &inst.e, &inst.guard}) place(field);
    const bool only_waits = inst.run == BranchWait || inst.run == BranchIfWait;
    if (inst.run != Branch && inst.run != BranchIf && !only_waits) continue;
    const bool back = inst.imm <= n;
    inst.imm = reinterpret_cast<uint64_t>(out_->code.data() + inst.imm);
    if (back && !only_waits) inst.run = inst.run == Branch ? BranchBack : BranchIfBack;
  }
  for (const std::vector<uint32_t>& table : f_.branch_tables) {
    out_->branch_tables.emplace_back();
    for (uint32_t target : table) out_->branch_tables.back().push_back(start_of_[target]);
  }
  for (struct Constant& constant : out_->constants) constant.offset += out_->constants_offset;
}

std::shared_ptr<const Images> KernelCode::Resolve(std::span<const uint64_t> variables) const {
  base::MutexLock lock(&mutex_);
  if (images_ != nullptr && images_->variables.size() == variables.size() &&
      std::equal(variables.begin(), variables.end(), images_->variables.begin())) {
    return images_;
  }
  std::shared_ptr<Images> images = std::make_shared<Images>();
  images->variables.assign(variables.begin(), variables.end());
  for (const std::unique_ptr<FunctionCode>& function : functions) {
    std::vector<std::byte>& image = images->by_function.emplace_back();
    image.resize(function->frame_bytes - function->constants_offset);
    for (const Constant& constant : function->constants) {
      uint64_t value = constant.bits;
      if (constant.variable < variables.size()) value += variables[constant.variable];
      std::byte* at = image.data() + (constant.offset - function->constants_offset);
      for (uint32_t lane = 0; lane < kLanes; ++lane, at += constant.bytes) {
        std::memcpy(at, &value, constant.bytes);
      }
    }
  }
  images_ = images;
  return images;
}

std::shared_ptr<KernelCode> TranslateAnew(const ptx::KernelImpl& kernel, bool checked) {
  std::shared_ptr<KernelCode> code = std::make_shared<KernelCode>();
  code->checked = checked;
  code->kernel = &kernel;
  for (const Function* function : kernel.reachable()) {
    code->functions.push_back(std::make_unique<FunctionCode>());
    FunctionCode* out = code->functions.back().get();
    out->source = function;
    out->index = static_cast<uint32_t>(code->functions.size() - 1);
    out->local_bytes = function->local_bytes;
    code->by_source[function] = out;
  }
  for (const std::unique_ptr<FunctionCode>& function : code->functions) {
    FunctionTranslator(code.get(), function.get()).Run();
  }
  // Recursion needs a stack; its depth is known only when it runs.
  constexpr uint32_t kRecursionBytes = 64 << 10;
  const uint32_t local = (kernel.local_bytes() + 15) / 16 * 16;
  code->local_stride = kernel.recursive() || code->allocates ? local + kRecursionBytes : local;
  return code;
}

std::shared_ptr<const KernelCode> Translate(const ptx::KernelImpl& kernel, bool checked) {
  static base::Mutex mutex;
  base::MutexLock lock(&mutex);
  std::shared_ptr<ptx::KernelImpl::Translation>& kept =
      checked ? kernel.checked_translation : kernel.translation;
  if (kept == nullptr) kept = TranslateAnew(kernel, checked);
  return std::static_pointer_cast<const KernelCode>(kept);
}

}  // namespace softgpu::exec
