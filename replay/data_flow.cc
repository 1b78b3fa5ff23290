#include "replay/data_flow.h"

#include <algorithm>

#include "replay/arithmetic.h"

namespace replay {

using softgpu::ptx::Function;
using softgpu::ptx::Instruction;
using softgpu::ptx::kNoIndex;
using softgpu::ptx::Op;
using softgpu::ptx::Operand;
using softgpu::ptx::Space;
using softgpu::ptx::Symbol;

namespace {

// Each pass moves values along all of the code; the height of the lattice bounds the rest.
constexpr int kPassesMax = 200;

}  // namespace

DataFlow::DataFlow(const softgpu::ptx::KernelImpl& kernel) : kernel_(kernel) {
  for (const Function* function : kernel.reachable()) {
    State& state = states_[function];
    state.registers.resize(function->registers.size());
    state.cells.resize(function->symbols.size());
    state.address_taken.resize(function->symbols.size());
    state.parameter_at.assign(function->registers.size(), kNowhere);
    FindTaken(*function);
  }
}

// A symbol that is more than the operand of an access is reached in ways that are not told apart.
void DataFlow::FindTaken(const Function& function) {
  for (const Operand& operand : function.operands) {
    const bool own = operand.kind == Operand::Kind::kSymbol && !operand.module_scope;
    if (own && !operand.address) states_.at(&function).address_taken[operand.index] = true;
  }
}

void DataFlow::Solve() {
  for (int pass = 0; pass < kPassesMax; ++pass) {
    changed_ = false;
    for (const Function* function : kernel_.reachable()) {
      for (const Instruction& i : function->instructions) {
        Step(*function, i);
        if (!failed_.empty()) return;
      }
    }
    if (!changed_) return;
  }
  failed_ = "the kernel's values do not settle";
}

// An instruction that is not named here computes its results from its operands. It reaches no
// memory, or shared memory alone.
void DataFlow::Step(const Function& function, const Instruction& i) {
  if (function.entry) PointAtParameter(function, i);
  switch (i.op) {
    case Op::kMov:
      return Move(function, i);
    case Op::kLd:
    case Op::kLdu:
      return Load(function, i);
    case Op::kSt:
    case Op::kStAsync:
      return Store(function, i);
    case Op::kAtom:
    case Op::kRed:
    case Op::kRedAsync:
      return Atomic(function, i);
    case Op::kCall:
      return Call(function, i);
    case Op::kCpAsync:
    case Op::kCpBulk:
    case Op::kCpReduceBulk:
    case Op::kStmatrix:
      changed_ |= shared_.Join(Origins::Of(kLoaded));
      return;
    case Op::kAlloca:
    case Op::kStacksave:
      return Write(function, function.Operands(i)[0], Origins::Of(kPrivate));
    case Op::kTex:
    case Op::kTld4:
    case Op::kSuld:
    case Op::kSust:
      return Fail("a texture or surface", i.line);
    default:
      return Compute(function, i);
  }
}

// A vector is packed into one value, or gets the value in all its elements.
void DataFlow::Move(const Function& function, const Instruction& i) {
  const Operand* o = function.Operands(i);
  Write(function, o[0], ValueOf(function, o[1]));
}

// By default a result is a number: most instructions work on data, not on addresses.
void DataFlow::Compute(const Function& function, const Instruction& i) {
  const Operand* o = function.Operands(i);
  const uint32_t results = ResultsOf(i);
  if (results == 0) return;
  Origins sum = Origins::Number(), choice;
  for (uint32_t k = results; k < i.count; ++k) {
    const Origins value = ValueOf(function, o[k]);
    sum = sum.Plus(value);
    if (k < results + 2) choice.Join(value);
  }
  Origins value;
  switch (ArithmeticOf(i.op)) {
    case Arithmetic::kSum:
      value = sum;
      break;
    case Arithmetic::kChoice:
      value = choice;
      break;
    case Arithmetic::kCopy:
      value = ValueOf(function, o[results]);
      break;
    case Arithmetic::kProductSum:
      value = sum.bottom() ? sum : choice.Scaled().Plus(ValueOf(function, o[results + 2]));
      break;
    default:
      value = sum.Scaled();
      break;
  }
  for (uint32_t k = 0; k < results; ++k) Write(function, o[k], value);
}

void DataFlow::Load(const Function& function, const Instruction& i) {
  const Operand* o = function.Operands(i);
  const uint32_t bytes = softgpu::ptx::Bytes(i.type);
  if (o[0].kind != Operand::Kind::kVector) {
    return Write(function, o[0], LoadedFrom(function, i, o[1], 0, bytes));
  }
  for (uint32_t k = 0; k < o[0].count; ++k) {
    Write(function, function.operands[o[0].index + k],
          LoadedFrom(function, i, o[1], k * bytes, bytes));
  }
}

// A load of less than eight bytes gives a number. Two such loads can make an address, but that one
// has no origin, so the access through it is unknown.
Origins DataFlow::LoadedFrom(const Function& function, const Instruction& i, const Operand& address,
                             uint32_t skip, uint32_t bytes) {
  const State& state = states_.at(&function);
  if (IsKernelParameter(function, address)) {
    const Symbol& symbol = function.symbols[address.index];
    return ParameterBytes(symbol.offset + static_cast<uint32_t>(address.bits) + skip, bytes);
  }
  if (address.kind == Operand::Kind::kRegister) {
    const int64_t at = state.parameter_at[address.index];
    if (at == kAnywhere) return AnyParameter();
    if (at != kNowhere && i.space == Space::kParam) {
      return ParameterBytes(static_cast<uint32_t>(at + static_cast<int64_t>(address.bits)) + skip,
                            bytes);
    }
    if (at != kNowhere) return AnyParameter();
  }
  Origins* const cell = CellOf(function, i, address);
  const Origins value = cell != nullptr ? *cell : FromMemory(ValueOf(function, address));
  return bytes < 8 ? value.Scaled() : value;
}

// What an address leads to: memory of others, and this kernel's own where it may point there.
Origins DataFlow::FromMemory(const Origins& address) {
  if (address.unknown()) return address;
  Origins value;
  for (OriginSet alternative : address.alternatives()) {
    if ((alternative & kPrivate) == 0) {
      value.Join(Origins::Of(kLoaded));
    } else {
      value.Join(local_);
      value.Join(shared_);
    }
  }
  return value;
}

Origins DataFlow::ParameterBytes(uint32_t offset, uint32_t bytes) {
  Origins value = Origins::Number();
  if (bytes < 8) return value;
  for (uint32_t word = 0; word < bytes; word += 8) {
    value = value.Plus(
        Origins::Of(OriginSet{1} << OriginOf({Origin::Kind::kParameter, offset + word})));
  }
  return value;
}

// A load from the parameters at an offset that is computed: any word may come.
Origins DataFlow::AnyParameter() {
  Origins value;
  for (uint32_t offset = 0; offset + 8 <= kernel_.param_bytes() && failed_.empty(); offset += 8) {
    value.Join(ParameterBytes(offset, 8));
  }
  return value;
}

Origins* DataFlow::CellOf(const Function& function, const Instruction& i, const Operand& address) {
  State& state = states_.at(&function);
  if (address.kind == Operand::Kind::kSymbol) {
    const Symbol& symbol = SymbolOf(kernel_, function, address);
    if (symbol.space == Space::kShared) return &shared_;
    if (symbol.variable != kNoIndex) return nullptr;
    if (address.module_scope || state.address_taken[address.index]) return &local_;
    return &state.cells[address.index];
  }
  if (i.space == Space::kShared) return &shared_;
  return i.space == Space::kLocal || i.space == Space::kParam ? &local_ : nullptr;
}

// A store through an address that may be private changes all private memory that is reached through
// addresses; a store to memory of others changes nothing here, since loads from there give kLoaded.
void DataFlow::Store(const Function& function, const Instruction& i) {
  const Operand* o = function.Operands(i);
  Origins value;
  const uint32_t count = o[1].kind == Operand::Kind::kVector ? o[1].count : 1;
  for (uint32_t k = 0; k < count; ++k) {
    const Operand& element =
        o[1].kind == Operand::Kind::kVector ? function.operands[o[1].index + k] : o[1];
    const Origins one = ValueOf(function, element);
    value.Join(softgpu::ptx::Bytes(i.type) < 8 ? one.Scaled() : one);
  }
  if (Origins* const cell = CellOf(function, i, o[0])) {
    changed_ |= cell->Join(value);
    return;
  }
  const Origins address = ValueOf(function, o[0]);
  if (!address.unknown() && (address.touched() & kPrivate) == 0) return;
  changed_ |= local_.Join(value);
  changed_ |= shared_.Join(value);
}

// An atomic on eight bytes gives back what was in memory, which may be an address.
void DataFlow::Atomic(const Function& function, const Instruction& i) {
  const Operand* o = function.Operands(i);
  const uint32_t results = i.op == Op::kAtom ? 1 : 0;
  // Values that are exchanged through private memory are not told apart: each may be an address.
  changed_ |= local_.Join(Origins::Of(kLoaded));
  changed_ |= shared_.Join(Origins::Of(kLoaded));
  if (results == 0) return;
  const bool wide = softgpu::ptx::Bytes(i.type) >= 8;
  Write(function, o[0], wide ? Origins::Of(kLoaded) : Origins::Number());
}

// Arguments flow into the cells of the function's parameters, whichever caller it has: all callers
// of a function share one copy of its values.
void DataFlow::Call(const Function& function, const Instruction& i) {
  const Operand* o = function.Operands(i);
  if (o[0].kind != Operand::Kind::kFunction) return Fail("a call through a pointer", i.line);
  const Function* callee = kernel_.module().functions[o[0].index].get();
  const auto found = states_.find(callee);
  if (!callee->defined || found == states_.end()) {
    return Fail("a call of " + softgpu::ptx::ReadableName(callee->name), i.line);
  }
  const softgpu::ptx::CallSite& site = function.calls[o[1].bits];
  State& mine = states_.at(&function);
  State& theirs = found->second;
  const auto cell = [this](State& state, uint32_t symbol) {
    return state.address_taken[symbol] ? &local_ : &state.cells[symbol];
  };
  for (size_t k = 0; k < site.arguments.size() && k < callee->parameters.size(); ++k) {
    changed_ |= cell(theirs, callee->parameters[k])->Join(*cell(mine, site.arguments[k]));
  }
  for (size_t k = 0; k < site.results.size() && k < callee->results.size(); ++k) {
    changed_ |= cell(mine, site.results[k])->Join(*cell(theirs, callee->results[k]));
  }
}

// Registers that hold the address of a parameter: compilers take it of large structures.
void DataFlow::PointAtParameter(const Function& function, const Instruction& i) {
  const Operand* o = function.Operands(i);
  if (i.count < 2 || o[0].kind != Operand::Kind::kRegister) return;
  if (ResultsOf(i) != 1 || i.op == Op::kLd || i.op == Op::kLdu) return;
  State& state = states_.at(&function);
  int64_t at = kNowhere;
  for (uint32_t k = 1; k < i.count; ++k) {
    if (IsKernelParameter(function, o[k])) {
      at = i.op == Op::kMov ? function.symbols[o[k].index].offset + static_cast<int64_t>(o[k].bits)
                            : kAnywhere;
    } else if (o[k].kind == Operand::Kind::kRegister &&
               state.parameter_at[o[k].index] != kNowhere) {
      const int64_t from = state.parameter_at[o[k].index];
      const bool moves = i.op == Op::kMov && from != kAnywhere;
      const bool adds =
          i.op == Op::kAdd && from != kAnywhere && k == 1 && o[2].kind == Operand::Kind::kImmediate;
      at = moves ? from : adds ? from + static_cast<int64_t>(o[2].bits) : kAnywhere;
    }
  }
  int64_t& known = state.parameter_at[o[0].index];
  const int64_t joined = known == kNowhere || known == at ? at : at == kNowhere ? known : kAnywhere;
  changed_ |= joined != known;
  // Through a generic address, memory that is taken for local holds parameters, too.
  if (joined != known && i.op == Op::kCvta) changed_ |= local_.Join(AnyParameter());
  known = joined;
}

Origins DataFlow::ValueOf(const Function& function, const Operand& operand) {
  switch (operand.kind) {
    case Operand::Kind::kRegister:
      return states_.at(&function).registers[operand.index];
    case Operand::Kind::kSymbol: {
      const Symbol& symbol = SymbolOf(kernel_, function, operand);
      if (symbol.variable == kNoIndex) return Origins::Of(kPrivate);
      return Origins::Of(OriginSet{1} << OriginOf({Origin::Kind::kVariable, symbol.variable}));
    }
    case Operand::Kind::kVector: {
      Origins all = Origins::Number();
      for (uint32_t k = 0; k < operand.count; ++k) {
        all = all.Plus(ValueOf(function, function.operands[operand.index + k]));
      }
      return all;
    }
    default:
      return Origins::Number();
  }
}

void DataFlow::Write(const Function& function, const Operand& to, const Origins& value) {
  State& state = states_.at(&function);
  if (to.kind == Operand::Kind::kRegister) changed_ |= state.registers[to.index].Join(value);
  if (to.second != kNoIndex) changed_ |= state.registers[to.second].Join(Origins::Number());
  if (to.kind != Operand::Kind::kVector) return;
  for (uint32_t k = 0; k < to.count; ++k) Write(function, function.operands[to.index + k], value);
}

// Origins are numbered in the order in which the code is read.
uint32_t DataFlow::OriginOf(Origin origin) {
  const auto found = std::find(origins_.begin(), origins_.end(), origin);
  if (found != origins_.end()) return static_cast<uint32_t>(found - origins_.begin());
  if (origins_.size() == kOriginsMax) {
    Fail("addresses from more than 62 places", 0);
    return 0;
  }
  origins_.push_back(origin);
  return static_cast<uint32_t>(origins_.size() - 1);
}

void DataFlow::Fail(const std::string& why, int line) {
  if (!failed_.empty()) return;
  failed_ = line == 0 ? why : why + " in line " + std::to_string(line);
}

}  // namespace replay
