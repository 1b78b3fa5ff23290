// Recursive-descent parser of PTX text into ModuleImpl. Internal to softgpu/ptx.
//
// The first error is kept and the lexer jumps to the end of the text, so every loop ends and no
// caller needs to test after each step. Nesting is bounded (kScopesMax); work is linear in the
// text. Thread safety: none.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "softgpu/ptx/ir.h"
#include "softgpu/ptx/lexer.h"

namespace softgpu::ptx {

inline constexpr size_t kScopesMax = 64;
inline constexpr uint64_t kVariableBytesMax = 1ull << 40;
inline constexpr uint32_t kLocalBytesMax = 512u << 10;  // the hardware's limit per thread
inline constexpr uint32_t kSharedBytesMax = 227u << 10;
inline constexpr uint32_t kParamBytesMax = 32764;

// True for an instruction whose operands are fragments of matrices (check_matrix.cc).
bool IsMatrix(Op op);

class Parser {
 public:
  Parser(std::string_view text, ModuleImpl* module) : lex_(text), module_(module) {}
  // False when the text is no module; error() then tells why.
  bool Run();
  const std::string& error() const { return error_; }

 private:
  // A variable's declaration: ".align 4 .b8 name[16]".
  struct Declarator {
    Type type = Type::kNone;
    uint32_t align = 0;
    uint64_t bytes = 0;
    uint64_t elements = 1;
    bool incomplete = false;  // name[]
    bool managed = false;
    uint8_t vector = 1;
    std::string_view name;
    int line = 0;
    // What ".b32 a[4], b" says of b as well.
    Declarator ForNext() const {
      Declarator next;
      next.type = type;
      next.align = align;
      next.managed = managed;
      next.vector = vector;
      return next;
    }
  };
  struct Linkage {
    bool is_extern = false, visible = false, weak = false;
  };
  struct RegisterRange {
    Type type = Type::kNone;
    uint64_t count = 0;  // 0: one register of exactly this name
    std::unordered_map<uint64_t, uint32_t> indices;
  };
  struct LabelUse {
    std::string_view name;
    uint32_t operand;  // in the pool; kNoIndex: `table`, `slot`
    uint32_t table, slot;
    int line;
  };
  struct Scope {
    std::unordered_map<std::string_view, RegisterRange> registers;
    std::unordered_map<std::string_view, uint32_t> symbols;
    std::unordered_map<std::string_view, uint32_t> labels;  // instruction number
    std::unordered_map<std::string_view, uint32_t> tables;
    std::vector<LabelUse> uses;
    uint32_t local_cursor = 0;
  };
  struct PendingAddress {
    uint32_t variable;
    uint64_t offset;
    std::string_view name;
    int64_t addend;
    int line;
    uint32_t bytes = 8;  // that have come, where each is an element: 0xFF(x), 0xFF00(x), ...
  };

  // parse_module.cc and parse_function.cc
  void ParseTopLevel();
  void ParseVersion();
  void ParseTarget();
  void SkipSection();
  void SkipStatement();
  void ParseModuleVariable(Space space, const Linkage& linkage);
  void ParseInitializer(const Declarator& declarator, Variable* variable, uint32_t index);
  PendingAddress ParseAddress(const Token& first);
  void ParseAddressByte(uint64_t mask, PendingAddress address);
  void ParseInitElement(const Declarator& declarator, Variable* variable, uint32_t index);
  void ResolveAddresses();
  void CheckExterns();
  bool ParseDeclarator(Declarator* out);
  void ParseFunction(bool entry, const Linkage& linkage);
  void ParseFunctionDirectives();
  void ParseFormals(bool results);
  void AddFormal(const Declarator& declarator, bool result);
  void MakeKernels();

  // parse_body.cc
  void ParseBody();
  void ParseStatement();
  void ParseBodyDirective();
  void ParseRegisters(Type first);
  void ParseLocalVariables(Space space);
  void ParseBranchTargets(std::string_view name);
  void OpenScope();
  void CloseScope();
  void ResolveLabels(Scope* scope, Scope* parent);
  void ParseInstruction();
  void ParseCall(Instruction* instruction);
  std::vector<uint32_t> ParseCallList(bool results);
  bool FindRegister(std::string_view name, uint32_t* index);
  uint32_t AddLocalSymbol(const Declarator& declarator, Space space);

  // parse_operand.cc
  Operand ParseOperand(const Instruction& instruction);
  Operand ParseAddress(const Instruction& instruction);
  Operand ParseIndexed(Operand variable, const Instruction& instruction);
  Operand ParseCoordinates(Operand object, const Instruction& instruction);
  Operand ParseVector(const Instruction& instruction);
  Operand ParseNumber();
  Operand ParseName(const Token& token, const Instruction& instruction);
  bool FindSymbol(std::string_view name, Operand* out);

  // check.cc: gives operands their types' bits and refuses what the row's signature does not allow.
  void Check(Instruction* instruction);
  bool CheckOperand(const Instruction& instruction, char letter, bool result, Operand* operand);
  bool CheckValue(Operand* operand, Type type, bool may_be_wider, bool result);
  bool CheckPredicate(const Operand& operand, bool result);
  bool CheckSpecialForm(const Instruction& instruction, Operand* operands);
  bool CheckMove(const Instruction& instruction, Operand* operands);
  bool CheckCoordinates(const Instruction& i, const Operand& operand);
  bool CheckMatrix(const Instruction& instruction, const Operand* operands) const;
  bool CheckBulk(const Instruction& instruction, Operand* operands);
  bool IsFragment(const Operand& operand, uint32_t count, Type type) const;
  uint32_t RegisterBits(const Operand& operand) const;

  // Small steps.
  void Fail(int line, std::string message);
  void Expect(char c);
  bool Accept(char c);
  Token ExpectWord();
  uint64_t ExpectInteger();
  uint32_t FunctionIndex(std::string_view name);

  Lexer lex_;
  ModuleImpl* module_;
  std::string error_;
  std::unordered_map<std::string_view, uint32_t> symbol_by_name_, function_by_name_;
  std::vector<PendingAddress> pending_;
  std::vector<std::pair<std::string, int>> function_uses_;  // called or address taken, with line

  Function* function_ = nullptr;
  std::vector<Scope> scopes_;
};

}  // namespace softgpu::ptx
