#include "softgpu/jit/describe.h"

#include <unordered_map>
#include <unordered_set>

#include "base/find.h"
#include "softgpu/exec/handler_key.h"
#include "softgpu/exec/handlers.h"
#include "softgpu/exec/memory_access.h"

namespace softgpu::jit {
namespace {

using exec::Handler;
using exec::Inst;

// Handlers that are no rows of the tables. What is not here may do anything.
const std::unordered_map<Handler, Step>& Steps() {
  static const std::unordered_map<Handler, Step>* const steps = [] {
    auto* map = new std::unordered_map<Handler, Step>{
        {exec::Branch, Step::kBranch},
        {exec::BranchBack, Step::kBranch},
        {exec::BranchIf, Step::kBranchIf},
        {exec::BranchIfBack, Step::kBranchIf},
        {exec::BranchWait, Step::kWait},
        {exec::BranchIfWait, Step::kWait},
        {exec::Join, Step::kJoin},
        {exec::ReadSpecial32, Step::kSpecial},
        {exec::ReadSpecial64, Step::kSpecial},
        {exec::LoadParam, Step::kParameter},
        {exec::Shfl, Step::kShuffle},
        {exec::MemoryFence, Step::kCall},
        {exec::Nothing, Step::kCall},
        {exec::LocalAddress, Step::kCall},
        {exec::IsInWindow, Step::kCall},
        {exec::Activemask, Step::kCall},
        {exec::CopyAsync, Step::kCall},
        {exec::Pack, Step::kCall},
        {exec::Unpack, Step::kCallWide},
        {exec::AccessAny, Step::kCallWide},
        {exec::BranchTable, Step::kLeave},
        {exec::Call, Step::kLeave},
        {exec::BarSync, Step::kLeave},
        {exec::BarArrive, Step::kLeave},
        {exec::BarRed, Step::kLeave},
        {exec::BarRedResult, Step::kLeave},
        {exec::Vote, Step::kLeave},
        {exec::Match32, Step::kLeave},
        {exec::Match64, Step::kLeave},
        {exec::Redux, Step::kLeave},
        {exec::Elect, Step::kLeave},
        {exec::WarpBarrier, Step::kLeave},
        {exec::Yield, Step::kLeave},
        {exec::Exit, Step::kExit},
        {exec::Return, Step::kExit},
        {exec::Trap, Step::kEnd},
        {exec::Unimplemented, Step::kEnd},
    };
    for (int op = 0; op <= static_cast<int>(ptx::AtomOp::kExch); ++op) {
      for (int type = 0; type <= static_cast<int>(ptx::Type::kE5M2x2); ++type) {
        const Handler handler =
            exec::AtomicHandler(static_cast<uint8_t>(op), static_cast<ptx::Type>(type));
        if (handler != nullptr) map->emplace(handler, Step::kCall);
      }
    }
    return map;
  }();
  return *steps;
}

bool LoadsVector(uint32_t key) {
  for (exec::Internal load : {exec::Internal::kLoadFast, exec::Internal::kLoadShared32,
                              exec::Internal::kLoadShared64, exec::Internal::kUnpack}) {
    if (key >> 20 == exec::Key(load, ptx::Type::kNone) >> 20) return true;
  }
  return false;
}

ProgramInst DescribeOne(const Inst& inst, const Inst* begin) {
  ProgramInst out;
  Handler handler = inst.run;
  bool rounded = false;
  if (handler == exec::Guarded || handler == exec::GuardedRounded) {
    out.guarded = 1;
    rounded = handler == exec::GuardedRounded;
    handler = inst.inner;
  } else if (handler == exec::Rounded) {
    rounded = true;
    handler = inst.inner;
  }
  out.d = inst.d;
  out.a = inst.a;
  out.b = inst.b;
  out.c = inst.c;
  out.e = inst.e;
  out.guard = inst.guard;
  out.imm = inst.imm;
  out.aux = inst.aux;
  const uint32_t key = exec::KeyOf(handler);
  if (key != 0) {
    // Results of a row lie in d, but for vectors.
    out.key = rounded ? 0 : key;
    out.step = !rounded ? Step::kRow : LoadsVector(key) ? Step::kCallWide : Step::kCall;
    return out;
  }
  out.step = base::FindOr(Steps(), handler, Step::kLeaveWild);
  if (out.step == Step::kBranch || out.step == Step::kBranchIf || out.step == Step::kWait) {
    out.target = static_cast<uint32_t>(reinterpret_cast<const Inst*>(inst.imm) - begin);
    out.imm = 0;
  }
  return out;
}

}  // namespace

Program Describe(const exec::FunctionCode& code, bool linear) {
  Program program;
  program.linear = linear;
  program.constants_begin = code.constants_offset;
  for (const Inst& inst : code.code) {
    program.code.push_back(DescribeOne(inst, code.code.data()));
    // A table's number becomes one of this program's.
    if (inst.run == exec::BranchTable) program.code.back().target = 1 + inst.imm;
  }
  program.tables = code.branch_tables;
  for (const exec::Constant& constant : code.constants) {
    program.constants.push_back(
        {constant.offset, constant.bytes, constant.bits, constant.variable == ptx::kNoIndex});
  }
  return program;
}

}  // namespace softgpu::jit
