// The typed intermediate form of PTX: what the parser makes and both executors read.
//
// A function is one flat list of instructions; labels are instruction numbers. Operands sit in one
// pool per function. After Parse() every instruction obeys the signature of its row in
// instructions.inc: register sizes fit the types, so an executor needs no checks of its own. Thread
// safety: immutable after Parse.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "softgpu/ptx/module.h"
#include "softgpu/ptx/op.h"
#include "softgpu/ptx/types.h"

namespace softgpu::ptx {

inline constexpr uint32_t kNoIndex = ~0u;

struct Operand {
  enum class Kind : uint8_t {
    kNone,
    kRegister,   // index
    kImmediate,  // bits, already in the type that the instruction reads
    kSpecial,    // index is a Special
    kSymbol,     // address of a Symbol: index into Function::symbols or Module::symbols
    kFunction,   // index into Module::functions
    kLabel,      // index of an instruction
    kVector,     // index, count: a run of the operand pool
    kSink,       // "_"
    kTable,      // index into Function::branch_tables
  };
  Kind kind = Kind::kNone;
  bool negated = false;       // !%p
  bool address = false;       // [base + offset]
  bool module_scope = false;  // kSymbol: which list
  uint32_t index = 0;
  uint32_t count = 0;          // kVector
  uint32_t second = kNoIndex;  // the %q of %p|%q: a register
  uint64_t bits = 0;           // immediate value, or the offset of an address
};

struct Instruction {
  Op op = Op::kCount;
  Type type = Type::kNone;                        // of the result, or the only one
  Type type2 = Type::kNone;                       // of the source where the row has two
  Type type3 = Type::kNone, type4 = Type::kNone;  // mma: d, a, b, c
  Rounding rounding = Rounding::kNone;
  uint8_t mode = 0;  // MulMode, Compare, AtomOp, ...: the row says which
  Combine combine = Combine::kNone;
  Space space = Space::kGeneric;
  Space space2 = Space::kGeneric;  // the second one said: source of cp.async
  uint8_t vector = 1;              // .v2, .v4, .v8; mma.x1, .x2, .x4
  uint8_t guard_negated = 0;
  uint32_t flags = 0;             // Flag
  uint32_t guard = kNoIndex;      // register of @%p
  uint32_t first = 0, count = 0;  // operands in the pool
  int line = 0;
  bool Has(Flag flag) const { return (flags & flag) != 0; }
};

// A variable in memory. Module-scope .global and .const also have a Variable in
// PtxModule::variables().
struct Symbol {
  std::string name;
  Space space = Space::kGlobal;
  uint64_t bytes = 0;
  uint32_t align = 1;
  uint32_t element_bytes = 1;  // what an index between brackets counts
  uint32_t offset = 0;         // kParam of an entry or function, kLocal: within its function's area
  uint32_t variable = kNoIndex;  // index into PtxModule::variables()
  bool dynamic = false;          // .extern .shared x[]
};

// What a call does besides jumping.
struct CallSite {
  std::vector<uint32_t> arguments, results;  // Function::symbols of the caller
};

struct Block {
  uint32_t begin = 0, end = 0;  // instructions
  std::vector<uint32_t> successors;
  uint32_t post_dominator = kNoIndex;  // immediate; kNoIndex: only the function's exit
};

// A .loc directive: from `ptx_line` on, the code comes from `line` of `file`.
struct Location {
  int ptx_line = 0;
  uint32_t file = 0, line = 0;
};

struct Function {
  std::string name;
  bool entry = false, defined = false, noreturn = false;
  std::vector<Instruction> instructions;
  std::vector<Operand> operands;
  std::vector<Type> registers;  // by register index
  std::vector<Symbol> symbols;  // parameters, results, locals, shared of this function
  std::vector<uint32_t> parameters, results;  // symbols
  uint32_t local_bytes = 0;  // parameters and results of a .func, locals, call arguments
  std::vector<std::vector<uint32_t>> branch_tables;  // instruction numbers
  std::vector<CallSite> calls;  // Instruction of op kCall: operand 1's bits is the index
  std::vector<Block> blocks;
  std::vector<Location> locations;  // in order
  std::vector<bool> reconverges;    // by instruction: a divergent warp meets again before it
  // Of an entry:
  std::vector<ParamInfo> param_info;
  uint32_t param_bytes = 0;
  uint32_t threads_max = 0;
  Dim3Triple required_block;

  const Operand* Operands(const Instruction& i) const { return operands.data() + i.first; }
};

// Functions that no module defines and the executors provide.
enum class Builtin : uint8_t {
  kNone,
  kPrintf,
  kAssert,
  kMalloc,
  kFree,
  kMemcpy,
  kMemset,
  kSetCondition
};
Builtin FindBuiltin(std::string_view name);
// True for a function of the device runtime that launches kernels, or prepares that. No executor
// has one.
bool LaunchesFromDevice(std::string_view name);
// The sentence about a kernel or function with such a call, behind its name.
inline constexpr char kNoLaunches[] = " launches kernels from the device, which is not supported";

// "reduce(float*)" of "_Z6reducePf"; other names as they are.
std::string ReadableName(const std::string& name);

class ModuleImpl;

// An entry of a module, as the driver sees it; `function` is what executors read.
class KernelImpl final : public Kernel {
 public:
  KernelImpl(const ModuleImpl* module, const Function* function);
  const std::string& name() const override { return function_->name; }
  const std::vector<ParamInfo>& params() const override { return function_->param_info; }
  uint32_t param_bytes() const override { return function_->param_bytes; }
  uint32_t static_shared_bytes() const override { return static_shared_bytes_; }
  uint32_t local_bytes() const override { return local_bytes_; }
  uint32_t register_count() const override;
  uint32_t threads_max() const override;
  Dim3Triple required_block() const override { return function_->required_block; }

  const ModuleImpl& module() const { return *module_; }
  const Function& function() const { return *function_; }
  // Offset in the block's shared memory of a module-scope symbol (index) or of one of `owner`.
  uint32_t SharedOffset(const Function* owner, uint32_t symbol) const;
  // Where dynamic shared memory begins.
  uint32_t dynamic_shared_offset() const { return dynamic_shared_offset_; }
  bool recursive() const { return recursive_; }
  bool uses_heap() const override { return uses_heap_; }
  // "box+4": a byte of static or dynamic shared memory.
  std::string SharedName(uint64_t offset) const;
  // "file:line" that the PTX gives for one of its lines; empty when it says nothing.
  std::string SourceOf(int ptx_line) const;
  // Functions that this kernel may run, itself first.
  const std::vector<const Function*>& reachable() const { return reachable_; }

  // One slot in which an executor keeps its translation of this kernel, guarded by it.
  struct Translation {
    virtual ~Translation() = default;
  };
  mutable std::shared_ptr<Translation> translation, checked_translation;

 private:
  struct SharedPlace {
    const Function* owner;  // null: module scope
    uint32_t symbol, offset;
  };
  void FindReachable();
  void PlaceShared();
  void CountLocal();

  const ModuleImpl* module_;
  const Function* function_;
  std::vector<const Function*> reachable_;
  std::vector<SharedPlace> shared_;
  uint32_t static_shared_bytes_ = 0, dynamic_shared_offset_ = 0, local_bytes_ = 0;
  bool recursive_ = false, uses_heap_ = false;
};

class ModuleImpl final : public PtxModule {
 public:
  int ptx_version() const override { return version; }
  int target() const override { return target_; }
  const std::vector<std::unique_ptr<const Kernel>>& kernels() const override { return kernels_; }
  const std::vector<Variable>& variables() const override { return variables_; }
  const Function* FunctionAt(uint64_t address) const;

  int version = 0, target_ = 0;
  std::vector<std::unique_ptr<Function>> functions;
  std::vector<Symbol> symbols;            // module scope, all spaces
  std::map<uint64_t, std::string> files;  // of .file, by number
  std::vector<Variable> variables_;
  std::vector<std::unique_ptr<const Kernel>> kernels_;
};

}  // namespace softgpu::ptx
