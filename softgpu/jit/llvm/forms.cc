// How values depend on the lane: the rules, and the search for what holds throughout a program.
#include <cstring>
#include <optional>

#include "softgpu/jit/llvm/flow.h"

namespace softgpu::jit {
namespace {

using exec::Internal;
using exec::Op;
using exec::Type;
using ptx::Special;

// The known value of a constant, as a signed number of its size.
std::optional<int64_t> KnownValue(const Flow& flow, uint32_t offset) {
  const ProgramConstant* constant = flow.ConstantAt(offset);
  if (constant == nullptr || !constant->known) return std::nullopt;
  switch (constant->bytes) {
    case 2:
      return static_cast<int16_t>(constant->bits);
    case 4:
      return static_cast<int32_t>(constant->bits);
    default:
      return static_cast<int64_t>(constant->bits);
  }
}

bool Small(int64_t stride) { return stride >= 0 && stride < (1 << 20); }

Form Sum(Form a, Form b, int sign) {
  if (a.Varies() || b.Varies()) return kVaryingForm;
  const int64_t stride = a.stride + sign * b.stride;
  return Small(stride) ? Linear(stride) : kVaryingForm;
}

Form Times(Form a, std::optional<int64_t> factor) {
  if (a.of == Form::Of::kUniform) return a;
  if (a.Varies() || !factor.has_value() || !Small(*factor)) return kVaryingForm;
  return Small(a.stride * *factor) ? Linear(a.stride * *factor) : kVaryingForm;
}

Form Product(const Flow& flow, const ProgramInst& i, Form a, Form b) {
  if (a.of == Form::Of::kUniform && b.of == Form::Of::kUniform) return kUniformForm;
  return b.of == Form::Of::kUniform
             ? Times(a, KnownValue(flow, i.b))
             : Times(b, a.of == Form::Of::kUniform ? KnownValue(flow, i.a) : std::nullopt);
}

// Rows that keep values linear in the lane.
Form LinearForm(const Flow& flow, const ProgramInst& i, const Row& row, const Operands& o) {
  if (row.type == Type::kF32 || row.type == Type::kF64 || row.type == Type::kPred)
    return kVaryingForm;
  const Form a = flow.FormOf(o.sources[0]);
  const Form b = o.sources.size() > 1 ? flow.FormOf(o.sources[1]) : kUniformForm;
  if (row.internal) return kVaryingForm;
  switch (row.op) {
    case Op::kMov:
      return a;
    case Op::kAdd:
      return Sum(a, b, 1);
    case Op::kSub:
      return Sum(a, b, -1);
    case Op::kMul:
      return Product(flow, i, a, b);
    case Op::kMad:
      return Sum(Product(flow, i, a, b), flow.FormOf(o.sources[2]), 1);
    case Op::kShl: {
      const std::optional<int64_t> count = KnownValue(flow, i.b);
      if (!count.has_value() || *count < 0 || *count > 16) return kVaryingForm;
      return Times(a, int64_t{1} << *count);
    }
    case Op::kCvt: {
      const bool widens = row.type == Type::kB64 && row.variant == 0;
      const bool narrows = row.type == Type::kB32 && row.variant == 0 && row.type2 == Type::kU64;
      return widens || narrows ? a : kVaryingForm;
    }
    default:
      return kVaryingForm;
  }
}

// Offsets that a handler unknown to the compiler may change.
std::vector<uint32_t> MayWrite(const ProgramInst& inst) {
  switch (inst.step) {
    case Step::kShuffle:
      return {inst.d, inst.guard};
    case Step::kLeave:
      return {inst.d, inst.e};
    case Step::kCallWide:
    case Step::kLeaveWild:
      return {inst.d, inst.b, inst.c, inst.e};
    default:
      return {inst.d};
  }
}

// One generic address is another place for every lane when it lies in local memory.
bool LoadsGeneric(const ProgramInst& inst) {
  Access access;
  if (inst.step != Step::kRow || !AccessOf(RowOf(inst.key), &access)) return false;
  exec::MemoryShape shape;
  std::memcpy(&shape, &inst.aux, sizeof shape);
  return static_cast<ptx::Space>(shape.space) == ptx::Space::kGeneric;
}

Form SpecialForm(const Program& program, Special special) {
  if (special == Special::kLaneId) return Linear(1);
  if (special == Special::kTidX) return program.linear ? Linear(1) : kVaryingForm;
  if (special <= Special::kTidZ) return program.linear ? kUniformForm : kVaryingForm;
  return kUniformForm;
}

}  // namespace

Form Flow::ResultForm(uint32_t n) const {
  const ProgramInst& inst = program.code[n];
  const Operands& o = operands[n];
  if (inst.step == Step::kParameter) return kUniformForm;
  if (inst.step == Step::kShuffle) return kVaryingForm;
  if (inst.step == Step::kSpecial) return SpecialForm(program, static_cast<Special>(inst.imm));
  bool uniform = true, unknown = false;
  const size_t sources = o.sources.size() - (inst.guarded != 0 ? 1 : 0);
  for (size_t k = 0; k < sources; ++k) {
    const Form form = FormOf(o.sources[k]);
    uniform = uniform && (form.of == Form::Of::kUniform || form.of == Form::Of::kUnknown);
    unknown = unknown || form.of == Form::Of::kUnknown;
  }
  if (unknown) return {};
  if (uniform) return LoadsGeneric(inst) ? kVaryingForm : kUniformForm;
  return LinearForm(*this, inst, RowOf(inst.key), o);
}

bool Flow::Raise(uint32_t reg, Form form) {
  const Form now = Combine(forms[reg], form);
  const bool changed = now != forms[reg];
  forms[reg] = now;
  return changed;
}

// One round of all instructions.
bool Flow::SpreadForms() {
  bool changed = false;
  for (uint32_t n = 0; n < program.code.size(); ++n) {
    const ProgramInst& inst = program.code[n];
    if (!operands[n].native) {
      for (uint32_t offset : MayWrite(inst)) {
        for (uint32_t reg : At(offset)) changed = Raise(reg, kVaryingForm) || changed;
      }
      continue;
    }
    Form form = operands[n].results.empty() ? Form{} : ResultForm(n);
    if (inst.guarded != 0 && FormOf({inst.guard & ~1u, Kind::kPred}).Varies()) form = kVaryingForm;
    for (const Place& place : operands[n].results) {
      const uint32_t reg = Find(place);
      if (reg != kNone) changed = Raise(reg, form) || changed;
    }
  }
  return changed;
}

// Registers that a divergent branch's sides define and that live on where the sides meet.
bool Flow::MixAtJoins() {
  bool changed = false;
  for (uint32_t n = 0; n < program.code.size(); ++n) {
    const uint32_t join = post_dominator_[n];
    if (!Diverges(n) || join == kNone) continue;
    std::vector<bool> seen(program.code.size());
    std::vector<uint32_t> work = Successors(n);
    while (!work.empty()) {
      const uint32_t at = work.back();
      work.pop_back();
      if (at == join || seen[at]) continue;
      seen[at] = true;
      for (const Place& place : operands[at].results) {
        const uint32_t reg = Find(place);
        if (reg != kNone && live[join].Has(reg)) changed = Raise(reg, kVaryingForm) || changed;
      }
      for (uint32_t to : Successors(at)) work.push_back(to);
    }
  }
  return changed;
}

void Flow::FindForms() {
  forms.assign(registers.size(), Form{});
  FindLive();
  for (bool changed = true; changed;) {
    while (SpreadForms()) {
    }
    changed = MixAtJoins();
  }
  for (Form& form : forms) {
    if (form.of == Form::Of::kUnknown) form = kVaryingForm;
  }
  while (SpreadForms()) {
  }
}

}  // namespace softgpu::jit
