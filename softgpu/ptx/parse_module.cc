// Module scope: directives, variables with their initialisers, function headers.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/find.h"
#include "softgpu/ptx/parser.h"

namespace softgpu::ptx {
namespace {

bool IsPowerOfTwo(uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

Space SpaceOfDirective(std::string_view word) {
  if (word == ".global") return Space::kGlobal;
  if (word == ".const") return Space::kConst;
  if (word == ".shared") return Space::kShared;
  if (word == ".local") return Space::kLocal;
  return Space::kGeneric;
}

// The kernel or function that has `line` in its body.
std::string UserAt(const ModuleImpl& module, int line) {
  for (const std::unique_ptr<Function>& function : module.functions) {
    const std::vector<Instruction>& body = function->instructions;
    if (body.empty() || line < body.front().line || line > body.back().line) continue;
    return (function->entry ? "kernel " : "function ") + ReadableName(function->name);
  }
  return "a function";
}

}  // namespace

void Parser::Fail(int line, std::string message) {
  if (error_.empty()) {
    error_ = "ptxas application ptx input, line " + std::to_string(line) +
             "; fatal   : " + std::move(message);
  }
  lex_.Stop();
}

bool Parser::Accept(char c) {
  if (!lex_.Peek().Is(c)) return false;
  lex_.Next();
  return true;
}

void Parser::Expect(char c) {
  if (Accept(c)) return;
  const Token& token = lex_.Peek();
  const std::string found =
      token.kind == Token::Kind::kEnd ? "end of file" : "'" + std::string(token.text) + "'";
  Fail(token.line, "Parsing error near " + found + ": '" + std::string(1, c) + "' expected");
}

Token Parser::ExpectWord() {
  const Token token = lex_.Next();
  if (token.kind != Token::Kind::kWord) {
    Fail(token.line, "Parsing error near '" + std::string(token.text) + "': a name expected");
  }
  return token;
}

uint64_t Parser::ExpectInteger() {
  const Token token = lex_.Next();
  if (token.kind != Token::Kind::kInteger) {
    Fail(token.line, "Parsing error near '" + std::string(token.text) + "': a number expected");
    return 0;
  }
  return token.bits;
}

bool Parser::Run() {
  while (lex_.Peek().kind != Token::Kind::kEnd) ParseTopLevel();
  if (error_.empty() && module_->version == 0)
    Fail(1, "Missing .version directive at start of file");
  if (error_.empty()) CheckExterns();
  if (error_.empty()) ResolveAddresses();
  if (error_.empty()) MakeKernels();
  return error_.empty();
}

void Parser::ParseTopLevel() {
  Linkage linkage;
  Token token = lex_.Next();
  for (;; token = lex_.Next()) {
    if (token.Is(".visible"))
      linkage.visible = true;
    else if (token.Is(".extern"))
      linkage.is_extern = true;
    else if (token.Is(".weak") || token.Is(".common"))
      linkage.weak = true;
    else
      break;
  }
  const Space space = SpaceOfDirective(token.text);
  if (token.Is(".version")) return ParseVersion();
  if (module_->version == 0 && token.kind != Token::Kind::kEnd) {
    return Fail(token.line, "Missing .version directive at start of file '" +
                                std::string(token.text.substr(0, 40)) + "'");
  }
  if (token.Is(".target")) return ParseTarget();
  if (token.Is(".address_size")) {
    if (ExpectInteger() != 64) Fail(token.line, "Only 64-bit addresses are supported");
  } else if (token.Is(".entry")) {
    ParseFunction(true, linkage);
  } else if (token.Is(".func")) {
    ParseFunction(false, linkage);
  } else if (space != Space::kGeneric && token.kind == Token::Kind::kWord) {
    ParseModuleVariable(space, linkage);
  } else if (token.Is(".file")) {
    const uint64_t number = ExpectInteger();
    const Token name = lex_.Next();
    if (name.kind != Token::Kind::kString) Fail(token.line, "File name expected");
    module_->files[number] = std::string(name.text);
    while (Accept(',')) ExpectInteger();
  } else if (token.Is(".section")) {
    SkipSection();
  } else if (token.Is(".pragma")) {
    SkipStatement();
  } else if (token.kind != Token::Kind::kEnd && !token.Is(';')) {
    Fail(token.line, "Parsing error near '" + std::string(token.text.substr(0, 40)) + "'");
  }
}

void Parser::ParseVersion() {
  const Token token = lex_.Next();
  int major = 0, minor = 0;
  const std::string text(token.text.substr(0, 16));
  if (token.kind != Token::Kind::kFloat64 ||
      std::sscanf(text.c_str(), "%d.%d", &major, &minor) != 2 || major > 99 || minor > 9) {
    return Fail(token.line, "Bad .version '" + text + "'");
  }
  module_->version = major * 10 + minor;
}

void Parser::ParseTarget() {
  do {
    const Token token = ExpectWord();
    if (token.text.substr(0, 3) != "sm_") continue;  // debug, texmode_*, map_f64_to_f32
    int target = 0;
    for (char c : token.text.substr(3)) {
      if (c >= '0' && c <= '9' && target < 10000) target = target * 10 + (c - '0');
    }
    module_->target_ = target;
  } while (Accept(','));
}

void Parser::SkipSection() {
  while (lex_.Peek().kind != Token::Kind::kEnd && !lex_.Peek().Is('{')) lex_.Next();
  while (lex_.Peek().kind != Token::Kind::kEnd && !lex_.Peek().Is('}')) lex_.Next();
  Expect('}');
}

void Parser::SkipStatement() {
  while (lex_.Peek().kind != Token::Kind::kEnd && !lex_.Peek().Is(';')) lex_.Next();
  Expect(';');
}

// Reads attributes, type, name and dimensions; stops before an initialiser or ','.
bool Parser::ParseDeclarator(Declarator* out) {
  while (lex_.Peek().kind == Token::Kind::kWord && lex_.Peek().text[0] == '.') {
    const Token token = lex_.Next();
    const std::string_view word = token.text;
    if (word == ".align") {
      const uint64_t align = ExpectInteger();
      if (!IsPowerOfTwo(align) || align > 4096) Fail(token.line, "Bad alignment");
      out->align = std::max<uint32_t>(out->align, static_cast<uint32_t>(align));
    } else if (word == ".v2" || word == ".v4") {
      out->vector = static_cast<uint8_t>(word[2] - '0');
    } else if (word == ".attribute") {
      Expect('(');
      out->managed = ExpectWord().text == ".managed";
      while (lex_.Peek().kind != Token::Kind::kEnd && !lex_.Peek().Is(')')) lex_.Next();
      Expect(')');
    } else if (word == ".ptr") {
      // The space and alignment of what a parameter points to; its .align is not the parameter's.
      while (lex_.Peek().kind == Token::Kind::kWord && lex_.Peek().text[0] == '.') {
        if (lex_.Next().text == ".align") ExpectInteger();
      }
    } else if (TypeFromName(word.substr(1)) != Type::kNone) {
      out->type = TypeFromName(word.substr(1));
    } else {
      Fail(token.line, "Unsupported attribute or type '" + std::string(word) + "'");
      return false;
    }
  }
  const Token name = ExpectWord();
  out->name = name.text;
  out->line = name.line;
  if (out->type == Type::kNone)
    Fail(name.line, "Type missing in declaration of '" + std::string(name.text) + "'");
  if (!error_.empty()) return false;
  while (Accept('[')) {
    if (Accept(']')) {
      out->incomplete = true;
      continue;
    }
    const uint64_t size = ExpectInteger();
    Expect(']');
    if (size > kVariableBytesMax ||
        (out->elements > 0 && size > kVariableBytesMax / out->elements)) {
      Fail(name.line, "Variable '" + std::string(name.text) + "' is too large");
      return false;
    }
    out->elements *= size;
  }
  const uint32_t unit = std::max<uint32_t>(Bytes(out->type), 1) * out->vector;
  out->bytes = out->elements * unit;
  out->align = std::max(out->align, unit);
  return error_.empty();
}

void Parser::ParseModuleVariable(Space space, const Linkage& linkage) {
  Declarator declarator;
  do {
    declarator = declarator.ForNext();
    if (!ParseDeclarator(&declarator)) return;
    const uint32_t* const known = base::FindOrNull(symbol_by_name_, declarator.name);
    const bool again = known != nullptr;
    const uint32_t index = again ? *known : static_cast<uint32_t>(module_->symbols.size());
    if (!again) {
      symbol_by_name_[declarator.name] = index;
      module_->symbols.push_back(Symbol{std::string(declarator.name), space});
    }
    Symbol& symbol = module_->symbols[index];
    symbol.align = std::max(symbol.align, declarator.align);
    symbol.element_bytes = Bytes(declarator.type);
    symbol.bytes = std::max(symbol.bytes, declarator.incomplete ? 0 : declarator.bytes);
    symbol.dynamic = space == Space::kShared && linkage.is_extern && declarator.incomplete;
    if (space == Space::kShared || space == Space::kLocal) {
      if (declarator.bytes > kSharedBytesMax) {
        return Fail(declarator.line, "Variable '" + symbol.name + "' is too large");
      }
      if (space == Space::kLocal) {
        return Fail(declarator.line, "Module-scope .local variables are not supported");
      }
      continue;
    }
    if (linkage.is_extern) {  // an unresolved one is reported where it is used
      if (symbol.variable != kNoIndex) module_->variables_[symbol.variable].align = symbol.align;
      continue;
    }
    if (symbol.variable != kNoIndex) {
      return Fail(declarator.line, "Duplicate definition of variable '" + symbol.name + "'");
    }
    symbol.variable = static_cast<uint32_t>(module_->variables_.size());
    Variable variable;
    variable.name = symbol.name;
    variable.bytes = declarator.bytes;
    variable.align = symbol.align;
    variable.constant = space == Space::kConst;
    // Driver programs find a variable by name whatever its linkage, as the vendor's loader lets
    // them.
    variable.exported = linkage.visible || linkage.weak;
    variable.managed = declarator.managed;
    if (Accept('=')) ParseInitializer(declarator, &variable, symbol.variable);
    if (declarator.incomplete) variable.bytes = variable.init.size();
    symbol.bytes = variable.bytes;
    module_->variables_.push_back(std::move(variable));
  } while (Accept(','));
  Expect(';');
}

void Parser::ParseInitializer(const Declarator& declarator, Variable* variable, uint32_t index) {
  size_t depth = 0;
  do {
    while (Accept('{')) ++depth;
    if (depth > 8) return Fail(declarator.line, "Initializer nested too deeply");
    if (!lex_.Peek().Is('}')) ParseInitElement(declarator, variable, index);
    while (depth > 0 && Accept('}')) --depth;
  } while (error_.empty() && depth > 0 && Accept(','));
  while (depth-- > 0 && error_.empty()) Expect('}');
  if (!declarator.incomplete && variable->init.size() > declarator.bytes) {
    Fail(declarator.line, "Too many initializers for '" + variable->name + "'");
  }
}

// name, generic(name), and what is added.
Parser::PendingAddress Parser::ParseAddress(const Token& first) {
  PendingAddress address{0, 0, first.text, 0, first.line};
  if (address.name == "generic") {
    Expect('(');
    address.name = ExpectWord().text;
    Expect(')');
  }
  if (Accept('+'))
    address.addend = static_cast<int64_t>(ExpectInteger());
  else if (Accept('-'))
    address.addend = -static_cast<int64_t>(ExpectInteger());
  return address;
}

// The byte of an address that `mask` picks; its others are the elements before and after.
void Parser::ParseAddressByte(uint64_t mask, PendingAddress address) {
  Expect(')');
  uint32_t byte = 0;
  while (byte < 8 && mask != 0xffull << (8 * byte)) ++byte;
  address.bytes = 1;
  const bool follows = byte > 0 && byte < 8 && !pending_.empty() && pending_.back().bytes == byte &&
                       pending_.back().variable == address.variable &&
                       pending_.back().name == address.name &&
                       pending_.back().offset + byte == address.offset;
  if (follows) {
    ++pending_.back().bytes;
  } else if (byte == 0) {
    pending_.push_back(address);
  } else {
    Fail(address.line, "A mask of an address must pick its next byte");
  }
}

void Parser::ParseInitElement(const Declarator& declarator, Variable* variable, uint32_t index) {
  const bool minus = Accept('-');
  const Token token = lex_.Next();
  const uint32_t size = std::max<uint32_t>(Bytes(declarator.type), 1);
  uint64_t bits = token.bits;
  if (token.kind == Token::Kind::kWord) {
    if (size != 8) return Fail(token.line, "An address needs a 64-bit element");
    pending_.push_back(ParseAddress(token));
    pending_.back().variable = index;
    pending_.back().offset = variable->init.size();
    bits = 0;
  } else if (token.kind == Token::Kind::kInteger && size == 1 && Accept('(')) {
    PendingAddress address = ParseAddress(ExpectWord());
    address.variable = index;
    address.offset = variable->init.size();
    ParseAddressByte(bits, address);
    bits = 0;
  } else if (token.kind == Token::Kind::kFloat64 && declarator.type == Type::kF32) {
    double wide;
    std::memcpy(&wide, &bits, sizeof wide);
    const float narrow = static_cast<float>(minus ? -wide : wide);
    bits = 0;
    std::memcpy(&bits, &narrow, sizeof narrow);
  } else if (token.kind == Token::Kind::kInteger) {
    if (minus) bits = 0 - bits;
  } else if (token.kind == Token::Kind::kFloat32 || token.kind == Token::Kind::kFloat64) {
    if (minus) bits ^= 1ull << (size * 8 - 1);
  } else {
    return Fail(token.line,
                "Parsing error near '" + std::string(token.text) + "' in an initializer");
  }
  for (uint32_t i = 0; i < size; ++i) {
    variable->init.push_back(static_cast<std::byte>(i < 8 ? bits >> (8 * i) : 0));
  }
}

// Addresses of functions are constants of this module (kFunctionWindow), so only variables
// relocate.
void Parser::ResolveAddresses() {
  for (const PendingAddress& pending : pending_) {
    if (pending.bytes < 8) return Fail(pending.line, "Bytes of an address are missing");
    Variable& variable = module_->variables_[pending.variable];
    if (const uint32_t* const symbol = base::FindOrNull(symbol_by_name_, pending.name)) {
      const uint32_t target = module_->symbols[*symbol].variable;
      if (target == kNoIndex) {
        return Fail(pending.line, "Address of '" + std::string(pending.name) + "' is not constant");
      }
      variable.relocations.push_back({pending.offset, target, {}, pending.addend});
      continue;
    }
    const uint32_t* const function = base::FindOrNull(function_by_name_, pending.name);
    if (function == nullptr) {
      return Fail(pending.line, "Unknown symbol '" + std::string(pending.name) + "'");
    }
    const uint64_t address = kFunctionWindow + 16ull * *function + pending.addend;
    std::memcpy(variable.init.data() + pending.offset, &address, sizeof address);
  }
}

void Parser::CheckExterns() {
  for (const auto& [name, line] : function_uses_) {
    const Function& function = *module_->functions[function_by_name_.at(name)];
    if (!function.defined && LaunchesFromDevice(name))
      return Fail(line, UserAt(*module_, line) + kNoLaunches);
    if (!function.defined && FindBuiltin(name) == Builtin::kNone) {
      return Fail(line, "Unresolved extern function '" + name + "'");
    }
  }
}

}  // namespace softgpu::ptx
