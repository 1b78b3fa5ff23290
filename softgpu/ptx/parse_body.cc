// Function bodies: scopes, registers, labels, instructions.
#include <algorithm>

#include "base/find.h"
#include "softgpu/ptx/insert.h"
#include "softgpu/ptx/instruction_table.h"
#include "softgpu/ptx/parser.h"

namespace softgpu::ptx {

void Parser::ParseBody() {
  Expect('{');
  size_t depth = 1;
  while (error_.empty() && depth > 0) {
    const Token& token = lex_.Peek();
    if (token.kind == Token::Kind::kEnd)
      return Fail(token.line, "Unexpected end of file in function body");
    if (Accept('{')) {
      OpenScope();
      ++depth;
    } else if (Accept('}')) {
      if (--depth > 0) CloseScope();
    } else {
      ParseStatement();
    }
  }
  if (error_.empty()) ResolveLabels(&scopes_[0], nullptr);
  if (function_->local_bytes > kLocalBytesMax)
    Fail(lex_.Peek().line, "Function '" + function_->name + "' uses too much local memory");
}

void Parser::OpenScope() {
  if (scopes_.size() >= kScopesMax) return Fail(lex_.Peek().line, "Scopes nested too deeply");
  const uint32_t cursor = scopes_.back().local_cursor;
  scopes_.emplace_back();
  scopes_.back().local_cursor = cursor;  // siblings share their memory
}

void Parser::CloseScope() {
  ResolveLabels(&scopes_.back(), &scopes_[scopes_.size() - 2]);
  scopes_.pop_back();
}

// What this scope does not know, its parent may.
void Parser::ResolveLabels(Scope* scope, Scope* parent) {
  for (const LabelUse& use : scope->uses) {
    const uint32_t* const label = base::FindOrNull(scope->labels, use.name);
    const uint32_t* const table = base::FindOrNull(scope->tables, use.name);
    if (use.operand == kNoIndex && label != nullptr) {
      function_->branch_tables[use.table][use.slot] = *label;
    } else if (use.operand != kNoIndex && label != nullptr) {
      function_->operands[use.operand].index = *label;
    } else if (use.operand != kNoIndex && table != nullptr) {
      function_->operands[use.operand].kind = Operand::Kind::kTable;
      function_->operands[use.operand].index = *table;
    } else if (parent != nullptr) {
      parent->uses.push_back(use);
    } else {
      return Fail(use.line, "Unknown symbol '" + std::string(use.name) + "'");
    }
  }
}

void Parser::ParseStatement() {
  if (Accept(';')) return;
  const Token token = lex_.Peek();
  if (token.Is('@')) return ParseInstruction();
  if (token.kind != Token::Kind::kWord) {
    return Fail(token.line, "Parsing error near '" + std::string(token.text) + "'");
  }
  if (token.text[0] == '.') return ParseBodyDirective();
  // A label or an instruction: only what follows tells.
  lex_.Next();
  if (!Accept(':')) {
    Instruction instruction;
    instruction.line = token.line;
    const std::string wrong = ReadMnemonic(token.text, &instruction);
    if (!wrong.empty()) return Fail(token.line, wrong);
    function_->instructions.push_back(instruction);
    return ParseInstruction();
  }
  if (lex_.Peek().Is(".branchtargets")) {
    lex_.Next();
    return ParseBranchTargets(token.text);
  }
  if (lex_.Peek().Is(".callprototype") || lex_.Peek().Is(".calltargets")) return SkipStatement();
  const uint32_t here = static_cast<uint32_t>(function_->instructions.size());
  if (!scopes_.back().labels.emplace(token.text, here).second) {
    Fail(token.line, "Duplicate definition of label '" + std::string(token.text) + "'");
  }
}

void Parser::ParseBodyDirective() {
  const Token token = lex_.Next();
  if (token.Is(".reg")) return ParseRegisters(Type::kNone);
  if (token.text.substr(0, 5) == ".reg.") {  // the blank may be left out, as in NVIDIA's headers
    const Type type = TypeFromName(token.text.substr(5));
    if (type != Type::kNone) return ParseRegisters(type);
  }
  if (token.Is(".local")) return ParseLocalVariables(Space::kLocal);
  if (token.Is(".shared")) return ParseLocalVariables(Space::kShared);
  if (token.Is(".param")) return ParseLocalVariables(Space::kParam);
  if (token.Is(".global")) return ParseModuleVariable(Space::kGlobal, Linkage{});
  if (token.Is(".const")) return ParseModuleVariable(Space::kConst, Linkage{});
  if (token.Is(".pragma")) return SkipStatement();
  if (token.Is(".loc")) {
    const uint64_t file = ExpectInteger(), line = ExpectInteger();
    ExpectInteger();
    function_->locations.push_back(
        {token.line, static_cast<uint32_t>(file), static_cast<uint32_t>(line)});
    // ", function_name label, inlined_at file line column"
    while (Accept(',')) {
      ExpectWord();
      if (lex_.Peek().kind == Token::Kind::kWord && lex_.Peek().text[0] != '.') lex_.Next();
      if (Accept('+')) ExpectInteger();
      while (lex_.Peek().kind == Token::Kind::kInteger) lex_.Next();
    }
    return;
  }
  Fail(token.line, "Unsupported directive '" + std::string(token.text) + "'");
}

void Parser::ParseRegisters(Type first) {
  Declarator type;
  type.type = first;
  while (lex_.Peek().kind == Token::Kind::kWord && lex_.Peek().text[0] == '.') {
    const Token token = lex_.Next();
    type.type = TypeFromName(token.text.substr(1));
    if (type.type == Type::kNone) {
      return Fail(token.line, "Unsupported register type '" + std::string(token.text) + "'");
    }
  }
  do {
    const Token name = ExpectWord();
    RegisterRange range{type.type, 0, {}};
    if (Accept('<')) {
      range.count = ExpectInteger();
      Expect('>');
      if (range.count == 0 && error_.empty()) return Fail(name.line, "Empty register range");
    }
    if (type.type == Type::kNone) return Fail(name.line, "Register type missing");
    scopes_.back().registers[name.text] = std::move(range);
  } while (Accept(','));
  Expect(';');
}

uint32_t Parser::AddLocalSymbol(const Declarator& declarator, Space space) {
  Symbol symbol{std::string(declarator.name), space, declarator.bytes, declarator.align,
                Bytes(declarator.type)};
  const uint32_t index = static_cast<uint32_t>(function_->symbols.size());
  if (space != Space::kShared) {
    uint32_t& cursor = scopes_.back().local_cursor;
    cursor = (cursor + declarator.align - 1) / declarator.align * declarator.align;
    symbol.offset = cursor;
    if (declarator.bytes > kLocalBytesMax || cursor + declarator.bytes > kLocalBytesMax) {
      Fail(declarator.line, "Variable '" + symbol.name + "' does not fit into local memory");
      return 0;
    }
    cursor += static_cast<uint32_t>(declarator.bytes);
    function_->local_bytes = std::max(function_->local_bytes, cursor);
  }
  function_->symbols.push_back(std::move(symbol));
  scopes_.back().symbols[declarator.name] = index;
  return index;
}

void Parser::ParseLocalVariables(Space space) {
  Declarator declarator;
  do {
    declarator = declarator.ForNext();
    if (!ParseDeclarator(&declarator)) return;
    if (space == Space::kShared && declarator.bytes > kSharedBytesMax) {
      return Fail(declarator.line, "Variable '" + std::string(declarator.name) + "' is too large");
    }
    AddLocalSymbol(declarator, space);
  } while (error_.empty() && Accept(','));
  Expect(';');
}

void Parser::ParseBranchTargets(std::string_view name) {
  const uint32_t table = static_cast<uint32_t>(function_->branch_tables.size());
  function_->branch_tables.emplace_back();
  scopes_.back().tables[name] = table;
  do {
    const Token label = ExpectWord();
    std::vector<uint32_t>& targets = function_->branch_tables[table];
    scopes_.back().uses.push_back(
        {label.text, kNoIndex, table, static_cast<uint32_t>(targets.size()), label.line});
    targets.push_back(0);
  } while (Accept(','));
  Expect(';');
}

bool Parser::FindRegister(std::string_view name, uint32_t* index) {
  size_t digits = name.size();
  while (digits > 0 && name[digits - 1] >= '0' && name[digits - 1] <= '9') --digits;
  uint64_t number = 0;
  for (char c : name.substr(digits).substr(0, 18)) number = number * 10 + (c - '0');
  for (size_t i = scopes_.size(); i-- > 0;) {
    auto& registers = scopes_[i].registers;
    auto found = registers.find(name);
    uint64_t key = 0;
    if (found == registers.end() || found->second.count != 0) {
      if (digits == name.size()) continue;
      found = registers.find(name.substr(0, digits));
      if (found == registers.end() || number >= found->second.count) continue;
      key = number;
    }
    const auto [slot, added] =
        found->second.indices.emplace(key, static_cast<uint32_t>(function_->registers.size()));
    if (added) function_->registers.push_back(found->second.type);
    *index = slot->second;
    return true;
  }
  return false;
}

// With a guard: "@!%p mnemonic operands;". Without: the instruction is already pushed.
void Parser::ParseInstruction() {
  if (Accept('@')) {
    Instruction instruction;
    instruction.guard_negated = Accept('!');
    const Token guard = ExpectWord();
    if (!FindRegister(guard.text, &instruction.guard) ||
        function_->registers[instruction.guard] != Type::kPred) {
      return Fail(guard.line, "Guard '" + std::string(guard.text) + "' is no predicate");
    }
    const Token mnemonic = ExpectWord();
    instruction.line = mnemonic.line;
    const std::string wrong = ReadMnemonic(mnemonic.text, &instruction);
    if (!wrong.empty()) return Fail(mnemonic.line, wrong);
    function_->instructions.push_back(instruction);
  }
  Instruction instruction = function_->instructions.back();
  std::vector<Operand> operands;
  if (instruction.op == Op::kCall) {
    ParseCall(&instruction);
  } else {
    while (error_.empty() && !lex_.Peek().Is(';')) {
      operands.push_back(ParseOperand(instruction));
      if (!Accept(',')) break;
    }
    Expect(';');
    instruction.first = static_cast<uint32_t>(function_->operands.size());
    instruction.count = static_cast<uint32_t>(operands.size());
    for (Operand& operand : operands) {
      if (operand.kind == Operand::Kind::kLabel) {
        scopes_.back().uses.back().operand = static_cast<uint32_t>(function_->operands.size());
      }
      function_->operands.push_back(operand);
    }
  }
  if (!error_.empty()) return;
  Check(&instruction);
  function_->instructions.back() = instruction;
}

// An argument in a register is stored into a variable that the call can pass, and which has no use
// for its name: the register is found first.
std::vector<uint32_t> Parser::ParseCallList(bool results) {
  std::vector<uint32_t> symbols;
  while (error_.empty() && !Accept(')')) {
    const Token name = ExpectWord();
    Operand operand;
    if (!results && FindRegister(name.text, &operand.index)) {
      operand.kind = Operand::Kind::kRegister;
      Declarator variable;
      variable.name = name.text;
      variable.line = name.line;
      variable.type = function_->registers[operand.index];
      variable.bytes = variable.align = Bytes(variable.type);
      if (variable.bytes == 0) Fail(name.line, "A predicate is no argument of a call");
      if (!error_.empty()) return symbols;
      symbols.push_back(AddLocalSymbol(variable, Space::kParam));
      Insert("st.param.b" + std::to_string(8 * variable.bytes), name.line,
             {AddressOf(symbols.back()), operand}, function_);
      if (!lex_.Peek().Is(')')) Expect(',');
      continue;
    }
    if (!FindSymbol(name.text, &operand) || operand.module_scope ||
        function_->symbols[operand.index].space != Space::kParam ||
        (function_->entry && operand.index < function_->parameters.size())) {
      Fail(name.line, "Argument '" + std::string(name.text) + "' of a call is no .param variable");
      return symbols;
    }
    symbols.push_back(operand.index);
    if (!lex_.Peek().Is(')')) Expect(',');
  }
  return symbols;
}

// call (results), target, (arguments), prototype;   all but the target optional
void Parser::ParseCall(Instruction* instruction) {
  CallSite site;
  if (Accept('(')) {
    site.results = ParseCallList(true);
    Expect(',');
  }
  const Token target = ExpectWord();
  Operand operand;
  if (FindRegister(target.text, &operand.index)) {
    operand.kind = Operand::Kind::kRegister;
    if (Bits(function_->registers[operand.index]) != 64) {
      return Fail(target.line, "Indirect call needs a 64-bit register");
    }
  } else {
    operand.kind = Operand::Kind::kFunction;
    operand.index = FunctionIndex(target.text);
    function_uses_.emplace_back(std::string(target.text), target.line);
  }
  if (Accept(',')) {
    if (Accept('(')) {
      site.arguments = ParseCallList(false);
      if (Accept(',')) ExpectWord();
    } else {
      ExpectWord();
    }
  }
  Expect(';');
  Operand index;
  index.kind = Operand::Kind::kImmediate;
  index.bits = function_->calls.size();
  function_->calls.push_back(std::move(site));
  instruction->first = static_cast<uint32_t>(function_->operands.size());
  instruction->count = 2;
  function_->operands.push_back(operand);
  function_->operands.push_back(index);
}

}  // namespace softgpu::ptx
