// PtxModule::Parse and what a kernel knows of its module: reachable functions, shared and local
// memory.
#include "softgpu/ptx/module.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <unordered_set>

#include "base/find.h"
#include "softgpu/ptx/ir.h"
#include "softgpu/ptx/parser.h"

namespace softgpu {

std::shared_ptr<const PtxModule> PtxModule::Parse(std::string_view text, std::string* log) {
  std::shared_ptr<ptx::ModuleImpl> module = std::make_shared<ptx::ModuleImpl>();
  ptx::Parser parser(text, module.get());
  const bool parsed = parser.Run();
  if (log != nullptr) *log = parsed ? std::string() : parser.error() + "\n";
  if (!parsed) return nullptr;
  return module;
}

namespace ptx {
namespace {

uint32_t RoundUp(uint64_t value, uint32_t align) {
  return static_cast<uint32_t>((value + align - 1) / align * align);
}

}  // namespace

const Function* ModuleImpl::FunctionAt(uint64_t address) const {
  if (address < kFunctionWindow || (address - kFunctionWindow) % 16 != 0) return nullptr;
  const uint64_t index = (address - kFunctionWindow) / 16;
  if (index >= functions.size() || !functions[index]->defined) return nullptr;
  return functions[index].get();
}

KernelImpl::KernelImpl(const ModuleImpl* module, const Function* function)
    : module_(module), function_(function) {
  FindReachable();
  PlaceShared();
  CountLocal();
}

// Everything called directly, and once a register is called, every function of the module.
void KernelImpl::FindReachable() {
  std::unordered_set<const Function*> seen;
  const auto add = [&](const Function* callee) {
    const Builtin builtin = callee->defined ? Builtin::kNone : FindBuiltin(callee->name);
    uses_heap_ = uses_heap_ || builtin == Builtin::kMalloc || builtin == Builtin::kFree;
    if (callee->defined && seen.insert(callee).second) reachable_.push_back(callee);
  };
  add(function_);
  bool all = false;
  for (size_t n = 0; n < reachable_.size(); ++n) {
    for (const Instruction& i : reachable_[n]->instructions) {
      if (i.op != Op::kCall) continue;
      const Operand& target = reachable_[n]->Operands(i)[0];
      if (target.kind == Operand::Kind::kFunction) {
        add(module_->functions[target.index].get());
      } else if (!all) {
        all = true;
        for (const std::unique_ptr<Function>& other : module_->functions) {
          if (!other->entry) add(other.get());
        }
      }
    }
  }
}

void KernelImpl::PlaceShared() {
  uint64_t offset = 0;
  uint32_t align = 16;
  const auto place = [&](const Function* owner, uint32_t index, const Symbol& symbol) {
    for (const SharedPlace& known : shared_) {
      if (known.owner == owner && known.symbol == index) return;
    }
    offset = RoundUp(offset, symbol.align);
    align = std::max(align, symbol.align);
    shared_.push_back({owner, index, static_cast<uint32_t>(offset)});
    offset = std::min<uint64_t>(offset + symbol.bytes, 1u << 30);
  };
  std::vector<uint32_t> dynamic;
  for (const Function* function : reachable_) {
    for (uint32_t s = 0; s < function->symbols.size(); ++s) {
      if (function->symbols[s].space == Space::kShared) place(function, s, function->symbols[s]);
    }
    for (const Operand& operand : function->operands) {
      if (operand.kind != Operand::Kind::kSymbol || !operand.module_scope) continue;
      const Symbol& symbol = module_->symbols[operand.index];
      if (symbol.space != Space::kShared) continue;
      if (symbol.dynamic)
        dynamic.push_back(operand.index);
      else
        place(nullptr, operand.index, symbol);
    }
  }
  static_shared_bytes_ = static_cast<uint32_t>(offset);
  for (uint32_t s : dynamic) align = std::max(align, module_->symbols[s].align);
  dynamic_shared_offset_ = RoundUp(offset, align);
  for (uint32_t s : dynamic) shared_.push_back({nullptr, s, dynamic_shared_offset_});
}

uint32_t KernelImpl::SharedOffset(const Function* owner, uint32_t symbol) const {
  for (const SharedPlace& place : shared_) {
    if (place.owner == owner && place.symbol == symbol) return place.offset;
  }
  return 0;
}

// Compilers declare these as .extern functions; the vendor's driver supplies them, too.
Builtin FindBuiltin(std::string_view name) {
  static constexpr std::pair<std::string_view, Builtin> kBuiltins[] = {
      {"vprintf", Builtin::kPrintf},
      {"__assertfail", Builtin::kAssert},
      {"malloc", Builtin::kMalloc},
      {"free", Builtin::kFree},
      {"memcpy", Builtin::kMemcpy},
      {"memset", Builtin::kMemset},
      {"cudaGraphSetConditional", Builtin::kSetCondition}};
  for (const auto& [known, builtin] : kBuiltins) {
    if (known == name) return builtin;
  }
  return Builtin::kNone;
}

// By CUDA 12 and later, and by those before.
bool LaunchesFromDevice(std::string_view name) {
  for (std::string_view prefix : {"__cudaCDP2", "cudaLaunchDevice", "cudaGetParameterBuffer"}) {
    if (name.starts_with(prefix)) return true;
  }
  return false;
}

std::string ReadableName(const std::string& name) {
  int status = 0;
  char* const text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  const std::string readable = status == 0 ? text : name;
  std::free(text);
  return readable;
}

std::string KernelImpl::SharedName(uint64_t offset) const {
  const SharedPlace* best = nullptr;
  for (const SharedPlace& place : shared_) {
    if (place.offset <= offset && (best == nullptr || place.offset >= best->offset)) best = &place;
  }
  if (best == nullptr) return "offset " + std::to_string(offset);
  const Symbol& symbol =
      best->owner == nullptr ? module_->symbols[best->symbol] : best->owner->symbols[best->symbol];
  return ReadableName(symbol.name) + "+" + std::to_string(offset - best->offset);
}

std::string KernelImpl::SourceOf(int ptx_line) const {
  const Location* best = nullptr;
  for (const Function* function : reachable_) {
    if (function->instructions.empty() || ptx_line < function->instructions.front().line ||
        ptx_line > function->instructions.back().line) {
      continue;
    }
    for (const Location& location : function->locations) {
      if (location.ptx_line <= ptx_line) best = &location;
    }
  }
  if (best == nullptr) return {};
  const std::string* const file = base::FindOrNull(module_->files, best->file);
  if (file == nullptr) return {};
  const size_t slash = file->rfind('/');
  return file->substr(slash == std::string::npos ? 0 : slash + 1) + ":" +
         std::to_string(best->line);
}

// The deepest chain of calls; a recursive or indirect one gets a fixed stack.
void KernelImpl::CountLocal() {
  enum class State { kNew, kOpen, kDone };
  std::map<const Function*, std::pair<State, uint64_t>> seen;
  std::vector<std::pair<const Function*, size_t>> stack{{function_, 0}};
  seen[function_] = {State::kOpen, 0};
  while (!stack.empty()) {
    const Function* function = stack.back().first;
    size_t& at = stack.back().second;
    const Function* callee = nullptr;
    while (at < function->instructions.size() && callee == nullptr) {
      const Instruction& i = function->instructions[at++];
      if (i.op != Op::kCall) continue;
      const Operand& target = function->Operands(i)[0];
      if (target.kind != Operand::Kind::kFunction) {
        recursive_ = true;
        continue;
      }
      callee = module_->functions[target.index].get();
      std::pair<State, uint64_t>& known = seen[callee];
      if (known.first == State::kOpen) recursive_ = true;
      if (known.first == State::kDone) {
        seen[function].second = std::max(seen[function].second, known.second);
      }
      if (known.first != State::kNew) callee = nullptr;
    }
    if (callee != nullptr) {
      seen[callee].first = State::kOpen;
      stack.emplace_back(callee, 0);
      continue;
    }
    const uint64_t bytes = seen[function].second + RoundUp(function->local_bytes, 16);
    seen[function] = {State::kDone, bytes};
    stack.pop_back();
    if (!stack.empty()) {
      uint64_t& deepest = seen[stack.back().first].second;
      deepest = std::max(deepest, bytes);
    }
  }
  local_bytes_ = static_cast<uint32_t>(std::min<uint64_t>(seen[function_].second, kLocalBytesMax));
}

uint32_t KernelImpl::register_count() const {
  // The hardware's count needs its register allocator; report what a simple one would, within
  // limits.
  uint32_t words = 0;
  for (Type type : function_->registers) words += (Bits(type) + 31) / 32;
  return std::clamp<uint32_t>(words / 4 + 8, 16, 255);
}

uint32_t KernelImpl::threads_max() const {
  return function_->threads_max == 0 ? 1024 : function_->threads_max;
}

}  // namespace ptx
}  // namespace softgpu
