#include "softgpu/jit/llvm/nan.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <map>
#include <vector>

namespace softgpu::jit {
namespace {

// x of "x is a number ? x : NaN", else null.
llvm::Value* ChosenFrom(llvm::Value* value) {
  llvm::SelectInst* select = llvm::dyn_cast<llvm::SelectInst>(value);
  if (select == nullptr || !value->getType()->getScalarType()->isFloatTy()) return nullptr;
  llvm::FCmpInst* test = llvm::dyn_cast<llvm::FCmpInst>(select->getCondition());
  if (test == nullptr) return nullptr;
  const bool ordered = test->getPredicate() == llvm::CmpInst::FCMP_ORD;
  if (!ordered && test->getPredicate() != llvm::CmpInst::FCMP_UNO) return nullptr;
  llvm::Value* x = ordered ? select->getTrueValue() : select->getFalseValue();
  llvm::Value* other = ordered ? select->getFalseValue() : select->getTrueValue();
  const bool tests_x = test->getOperand(0) == x &&
                       (test->getOperand(1) == x || llvm::isa<llvm::Constant>(test->getOperand(1)));
  return tests_x && llvm::isa<llvm::Constant>(other) ? x : nullptr;
}

// Operations whose f32 results are canonical again, whatever NaN comes in.
bool MindsNoNan(const llvm::Instruction& i) {
  if (i.getNumOperands() == 0 || !i.getOperand(0)->getType()->getScalarType()->isFloatTy())
    return false;
  if (const llvm::IntrinsicInst* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i)) {
    return call->getIntrinsicID() == llvm::Intrinsic::fma ||
           call->getIntrinsicID() == llvm::Intrinsic::sqrt;
  }
  switch (i.getOpcode()) {
    case llvm::Instruction::FAdd:
    case llvm::Instruction::FSub:
    case llvm::Instruction::FMul:
    case llvm::Instruction::FDiv:
    case llvm::Instruction::FCmp:
      return true;
    default:
      return false;
  }
}

class Skipper {
 public:
  // `value`, or what it was before the choice; through loops too.
  llvm::Value* Before(llvm::Value* value) {
    if (llvm::Value* x = ChosenFrom(value)) return x;
    llvm::PHINode* phi = llvm::dyn_cast<llvm::PHINode>(value);
    if (phi == nullptr || !value->getType()->getScalarType()->isFloatTy()) return value;
    const auto known = phis_.find(phi);
    if (known != phis_.end()) return known->second;
    if (!MayChange(phi)) return value;
    llvm::PHINode* before =
        llvm::PHINode::Create(phi->getType(), phi->getNumIncomingValues(), "before", phi);
    phis_[phi] = before;
    phis_[before] = before;
    for (unsigned k = 0; k < phi->getNumIncomingValues(); ++k)
      before->addIncoming(Before(phi->getIncomingValue(k)), phi->getIncomingBlock(k));
    return before;
  }

 private:
  static bool MayChange(const llvm::PHINode* phi) {
    for (const llvm::Use& value : phi->incoming_values()) {
      if (ChosenFrom(value.get()) != nullptr || llvm::isa<llvm::PHINode>(value.get())) return true;
    }
    return false;
  }

  std::map<llvm::PHINode*, llvm::PHINode*> phis_;
};

}  // namespace

void SkipCanonicalNans(llvm::Function* function) {
  std::vector<llvm::Instruction*> users;
  for (llvm::BasicBlock& block : *function) {
    for (llvm::Instruction& i : block) {
      if (MindsNoNan(i)) users.push_back(&i);
    }
  }
  Skipper skipper;
  for (llvm::Instruction* user : users) {
    const unsigned operands = llvm::isa<llvm::CallInst>(user)
                                  ? llvm::cast<llvm::CallInst>(user)->arg_size()
                                  : user->getNumOperands();
    for (unsigned k = 0; k < operands; ++k)
      user->setOperand(k, skipper.Before(user->getOperand(k)));
  }
}

}  // namespace softgpu::jit
