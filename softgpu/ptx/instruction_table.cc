#include "softgpu/ptx/instruction_table.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

namespace softgpu::ptx {
namespace {

constexpr Row kRows[] = {
#define PTX_INSTRUCTION(name, id, signature, modifiers, types, summary) \
  {#name, Op::id, signature, modifiers, types, summary},
#include "softgpu/ptx/instructions.inc"
#undef PTX_INSTRUCTION
};

// Which field of Instruction a modifier word sets.
enum class Field : uint8_t { kRounding, kFlag, kMode, kCombine, kSpace, kVector, kNothing };

struct Word {
  uint32_t modifier_class;
  std::string_view text;
  Field field;
  uint32_t value;
};

template <class E>
constexpr uint32_t V(E e) {
  return static_cast<uint32_t>(e);
}

constexpr Word kWords[] = {
    {kmRounding, "rn", Field::kRounding, V(Rounding::kRn)},
    {kmRounding, "rz", Field::kRounding, V(Rounding::kRz)},
    {kmRounding, "rm", Field::kRounding, V(Rounding::kRm)},
    {kmRounding, "rp", Field::kRounding, V(Rounding::kRp)},
    {kmRounding, "rna", Field::kRounding, V(Rounding::kRna)},
    {kmRounding, "rni", Field::kRounding, V(Rounding::kRni)},
    {kmRounding, "rzi", Field::kRounding, V(Rounding::kRzi)},
    {kmRounding, "rmi", Field::kRounding, V(Rounding::kRmi)},
    {kmRounding, "rpi", Field::kRounding, V(Rounding::kRpi)},
    {kmFtz, "ftz", Field::kFlag, kFtz},
    {kmSat, "sat", Field::kFlag, kSat},
    {kmSat, "satfinite", Field::kFlag, kSatFinite},
    {kmCarry, "cc", Field::kFlag, kCarryOut},
    {kmMulMode, "lo", Field::kMode, V(MulMode::kLo)},
    {kmMulMode, "hi", Field::kMode, V(MulMode::kHi)},
    {kmMulMode, "wide", Field::kMode, V(MulMode::kWide)},
    {kmRelu, "relu", Field::kFlag, kRelu},
    {kmNan, "NaN", Field::kFlag, kNanResult},
    {kmApprox, "approx", Field::kFlag, kApprox},
    {kmApprox, "full", Field::kFlag, kFull},
    {kmShiftAmount, "shiftamt", Field::kFlag, kShiftAmount},
    {kmTest, "finite", Field::kMode, V(TestKind::kFinite)},
    {kmTest, "infinite", Field::kMode, V(TestKind::kInfinite)},
    {kmTest, "number", Field::kMode, V(TestKind::kNumber)},
    {kmTest, "notanumber", Field::kMode, V(TestKind::kNotANumber)},
    {kmTest, "normal", Field::kMode, V(TestKind::kNormal)},
    {kmTest, "subnormal", Field::kMode, V(TestKind::kSubnormal)},
    {kmCompare, "eq", Field::kMode, V(Compare::kEq)},
    {kmCompare, "ne", Field::kMode, V(Compare::kNe)},
    {kmCompare, "lt", Field::kMode, V(Compare::kLt)},
    {kmCompare, "le", Field::kMode, V(Compare::kLe)},
    {kmCompare, "gt", Field::kMode, V(Compare::kGt)},
    {kmCompare, "ge", Field::kMode, V(Compare::kGe)},
    {kmCompare, "lo", Field::kMode, V(Compare::kLo)},
    {kmCompare, "ls", Field::kMode, V(Compare::kLs)},
    {kmCompare, "hi", Field::kMode, V(Compare::kHi)},
    {kmCompare, "hs", Field::kMode, V(Compare::kHs)},
    {kmCompare, "equ", Field::kMode, V(Compare::kEqu)},
    {kmCompare, "neu", Field::kMode, V(Compare::kNeu)},
    {kmCompare, "ltu", Field::kMode, V(Compare::kLtu)},
    {kmCompare, "leu", Field::kMode, V(Compare::kLeu)},
    {kmCompare, "gtu", Field::kMode, V(Compare::kGtu)},
    {kmCompare, "geu", Field::kMode, V(Compare::kGeu)},
    {kmCompare, "num", Field::kMode, V(Compare::kNum)},
    {kmCompare, "nan", Field::kMode, V(Compare::kNan)},
    {kmCombine, "and", Field::kCombine, V(Combine::kAnd)},
    {kmCombine, "or", Field::kCombine, V(Combine::kOr)},
    {kmCombine, "xor", Field::kCombine, V(Combine::kXor)},
    {kmShf, "l", Field::kMode, V(ShfMode::kLeft)},
    {kmShf, "r", Field::kMode, V(ShfMode::kRight)},
    {kmShf, "wrap", Field::kFlag, kWrap},
    {kmShf, "clamp", Field::kNothing, 0},
    {kmPrmt, "f4e", Field::kMode, V(PrmtMode::kF4e)},
    {kmPrmt, "b4e", Field::kMode, V(PrmtMode::kB4e)},
    {kmPrmt, "rc8", Field::kMode, V(PrmtMode::kRc8)},
    {kmPrmt, "ecl", Field::kMode, V(PrmtMode::kEcl)},
    {kmPrmt, "ecr", Field::kMode, V(PrmtMode::kEcr)},
    {kmPrmt, "rc16", Field::kMode, V(PrmtMode::kRc16)},
    {kmTo, "to", Field::kFlag, kTo},
    {kmSpace | kmAsync, "global", Field::kSpace, V(Space::kGlobal)},
    {kmSpace, "const", Field::kSpace, V(Space::kConst)},
    {kmSpace | kmAsync, "shared", Field::kSpace, V(Space::kShared)},
    {kmSpace | kmAsync, "shared::cta", Field::kSpace, V(Space::kShared)},
    {kmSpace, "local", Field::kSpace, V(Space::kLocal)},
    {kmSpace, "param", Field::kSpace, V(Space::kParam)},
    {kmSpace, "param::entry", Field::kSpace, V(Space::kParam)},
    {kmSpace, "param::func", Field::kSpace, V(Space::kParam)},
    {kmMemory, "volatile", Field::kFlag, kVolatile},
    {kmMemory, "weak", Field::kNothing, 0},
    {kmMemory, "relaxed", Field::kFlag, kVolatile},
    {kmMemory, "acquire", Field::kFlag, kVolatile},
    {kmMemory, "release", Field::kFlag, kVolatile},
    {kmMemory, "acq_rel", Field::kNothing, 0},
    {kmMemory, "mmio", Field::kFlag, kVolatile},
    {kmMemory, "sc", Field::kNothing, 0},
    {kmMemory, "nc", Field::kNothing, 0},
    {kmMemory, "unified", Field::kNothing, 0},
    {kmMemory, "cta", Field::kNothing, 0},
    {kmMemory, "cluster", Field::kNothing, 0},
    {kmMemory, "gpu", Field::kNothing, 0},
    {kmMemory, "sys", Field::kNothing, 0},
    {kmMemory, "ca", Field::kNothing, 0},
    {kmMemory, "cg", Field::kNothing, 0},
    {kmMemory, "cs", Field::kNothing, 0},
    {kmMemory, "lu", Field::kNothing, 0},
    {kmMemory, "cv", Field::kFlag, kVolatile},
    {kmMemory, "wb", Field::kNothing, 0},
    {kmMemory, "wt", Field::kNothing, 0},
    {kmMemory, "L1", Field::kNothing, 0},
    {kmMemory, "L2", Field::kNothing, 0},
    {kmMemory, "L1::evict_normal", Field::kNothing, 0},
    {kmMemory, "L1::evict_unchanged", Field::kNothing, 0},
    {kmMemory, "L1::evict_first", Field::kNothing, 0},
    {kmMemory, "L1::evict_last", Field::kNothing, 0},
    {kmMemory, "L1::no_allocate", Field::kNothing, 0},
    {kmMemory, "L2::64B", Field::kNothing, 0},
    {kmMemory, "L2::128B", Field::kNothing, 0},
    {kmMemory, "L2::256B", Field::kNothing, 0},
    {kmMemory, "L2::evict_last", Field::kNothing, 0},
    {kmMemory, "L2::evict_normal", Field::kNothing, 0},
    {kmVector, "v2", Field::kVector, 2},
    {kmVector, "v4", Field::kVector, 4},
    {kmAtom, "and", Field::kMode, V(AtomOp::kAnd)},
    {kmAtom, "or", Field::kMode, V(AtomOp::kOr)},
    {kmAtom, "xor", Field::kMode, V(AtomOp::kXor)},
    {kmAtom, "add", Field::kMode, V(AtomOp::kAdd)},
    {kmAtom, "inc", Field::kMode, V(AtomOp::kInc)},
    {kmAtom, "dec", Field::kMode, V(AtomOp::kDec)},
    {kmAtom, "min", Field::kMode, V(AtomOp::kMin)},
    {kmAtom, "max", Field::kMode, V(AtomOp::kMax)},
    {kmAtom, "cas", Field::kMode, V(AtomOp::kCas)},
    {kmAtom, "exch", Field::kMode, V(AtomOp::kExch)},
    {kmNoFtz, "noftz", Field::kNothing, 0},
    {kmFence, "gl", Field::kNothing, 0},
    {kmFence, "proxy", Field::kNothing, 0},
    {kmFence, "alias", Field::kNothing, 0},
    {kmFence, "async", Field::kNothing, 0},
    {kmFence, "acq_rel", Field::kNothing, 0},
    {kmAsync, "commit_group", Field::kMode, V(AsyncMode::kCommitGroup)},
    {kmAsync, "wait_group", Field::kMode, V(AsyncMode::kWaitGroup)},
    {kmAsync, "wait_all", Field::kMode, V(AsyncMode::kWaitAll)},
    {kmSync, "sync", Field::kFlag, kSync},
    {kmSync, "aligned", Field::kNothing, 0},
    {kmShfl, "up", Field::kMode, V(ShflMode::kUp)},
    {kmShfl, "down", Field::kMode, V(ShflMode::kDown)},
    {kmShfl, "bfly", Field::kMode, V(ShflMode::kBfly)},
    {kmShfl, "idx", Field::kMode, V(ShflMode::kIdx)},
    {kmVote, "all", Field::kMode, V(VoteMode::kAll)},
    {kmVote, "any", Field::kMode, V(VoteMode::kAny)},
    {kmVote, "uni", Field::kMode, V(VoteMode::kUni)},
    {kmVote, "ballot", Field::kMode, V(VoteMode::kBallot)},
    {kmMma, "m16n8k4", Field::kMode, V(MmaShape::kM16N8K4)},
    {kmMma, "m16n8k8", Field::kMode, V(MmaShape::kM16N8K8)},
    {kmMma, "m16n8k16", Field::kMode, V(MmaShape::kM16N8K16)},
    {kmMma, "m16n8k32", Field::kMode, V(MmaShape::kM16N8K32)},
    {kmMma, "m8n8", Field::kMode, V(MmaShape::kM8N8)},
    {kmMma, "row", Field::kFlag, kRow},
    {kmMma, "col", Field::kFlag, kCol},
    {kmMma, "trans", Field::kFlag, kTranspose},
    {kmMma, "x1", Field::kVector, 1},
    {kmMma, "x2", Field::kVector, 2},
    {kmMma, "x4", Field::kVector, 4},
    {kmMma, "satfinite", Field::kFlag, kSatFinite},
    {kmUni, "uni", Field::kFlag, kUni},
    {kmBar, "sync", Field::kMode, V(BarMode::kSync)},
    {kmBar, "arrive", Field::kMode, V(BarMode::kArrive)},
    {kmBar, "red", Field::kMode, V(BarMode::kRed)},
    {kmBar, "cta", Field::kNothing, 0},
    {kmBar, "aligned", Field::kNothing, 0},
    {kmBar, "and", Field::kCombine, V(Combine::kAnd)},
    {kmBar, "or", Field::kCombine, V(Combine::kOr)},
    {kmBar, "popc", Field::kCombine, V(Combine::kPopc)},
    {kmMask, "mask", Field::kNothing, 0},
    {kmMask, "wait", Field::kNothing, 0},
    {kmMask, "launch_dependents", Field::kNothing, 0},
};

const Row* FindRow(std::string_view mnemonic, std::string_view* rest) {
  static const std::unordered_map<std::string_view, const Row*>* const by_name = [] {
    std::unordered_map<std::string_view, const Row*>* map =
        new std::unordered_map<std::string_view, const Row*>();
    for (const Row& row : kRows) map->emplace(row.name, &row);
    return map;
  }();
  // Names of more than one word ("bar.warp.sync") win over their first word.
  for (int words = 3; words >= 1; --words) {
    size_t end = 0;
    for (int i = 0; i < words && end != std::string_view::npos; ++i) {
      end = mnemonic.find('.', i == 0 ? 0 : end + 1);
    }
    const auto found = by_name->find(mnemonic.substr(0, end));
    if (found == by_name->end()) continue;
    *rest = end == std::string_view::npos ? std::string_view() : mnemonic.substr(end);
    return found->second;
  }
  return nullptr;
}

bool ListHas(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const size_t end = std::min(list.find(' '), list.size());
    if (list.substr(0, end) == word) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

void Apply(const Word& word, Instruction* out) {
  switch (word.field) {
    case Field::kRounding:
      out->rounding = static_cast<Rounding>(word.value);
      break;
    case Field::kFlag:
      out->flags |= word.value;
      break;
    case Field::kMode:
      out->mode = static_cast<uint8_t>(word.value);
      out->flags |= kHasMode;
      break;
    case Field::kCombine:
      out->combine = static_cast<Combine>(word.value);
      break;
    case Field::kSpace:
      if (out->op == Op::kCpAsync && out->space != Space::kGeneric) {
        out->space2 = static_cast<Space>(word.value);
      } else {
        out->space = static_cast<Space>(word.value);
      }
      break;
    case Field::kVector:
      out->vector = static_cast<uint8_t>(word.value);
      break;
    case Field::kNothing:
      break;
  }
}

// Types come in the order of the row's '/'-separated lists; one may be the last of its list alone.
bool TakeType(std::string_view text, std::string_view* lists, int* slot, Instruction* out) {
  const Type type = TypeFromName(text);
  if (type == Type::kNone || lists->empty()) return false;
  const size_t end = std::min(lists->find('/'), lists->size());
  if (!ListHas(lists->substr(0, end), text)) return false;
  lists->remove_prefix(std::min(end + 1, lists->size()));
  Type* const slots[] = {&out->type, &out->type2, &out->type3, &out->type4};
  *slots[(*slot)++] = type;
  return true;
}

}  // namespace

std::span<const Row> Rows() { return kRows; }

std::string ReadMnemonic(std::string_view mnemonic, Instruction* out) {
  std::string_view rest;
  const Row* row = FindRow(mnemonic, &rest);
  if (row == nullptr) return "Not a name of any known instruction: '" + std::string(mnemonic) + "'";
  out->op = row->op;
  std::string_view lists = row->types;
  int slot = 0;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('.', 1), rest.size());
    const std::string_view text = rest.substr(1, end - 1);
    rest.remove_prefix(end);
    if (TakeType(text, &lists, &slot, out)) continue;
    const Word* word = std::find_if(std::begin(kWords), std::end(kWords), [&](const Word& w) {
      return (w.modifier_class & row->modifiers) != 0 && w.text == text;
    });
    if (word == std::end(kWords)) {
      return "Unknown modifier '." + std::string(text) + "' of instruction '" +
             std::string(mnemonic) + "'";
    }
    Apply(*word, out);
  }
  if (!row->types.empty() && slot == 0) {
    const bool optional =
        row->op == Op::kBar || row->op == Op::kBarrier || row->op == Op::kNanosleep;
    if (!optional) return "Type missing in instruction '" + std::string(mnemonic) + "'";
  }
  return {};
}

}  // namespace softgpu::ptx
