// Operands. An immediate keeps its raw bits here; Check() converts it once the type is known.
// Operand::count of an immediate says how it was written: 0 integer, 1 f32 bits, 2 f64 bits.
#include "base/find.h"
#include "softgpu/ptx/insert.h"
#include "softgpu/ptx/instruction_table.h"
#include "softgpu/ptx/parser.h"

namespace softgpu::ptx {
namespace {

Operand Immediate(uint32_t value) {
  Operand operand;
  operand.kind = Operand::Kind::kImmediate;
  operand.bits = value;
  return operand;
}

// The register with its 32 bits extended to 64, as instructions before the present one do it.
Operand Widened(const Operand& narrow, bool is_signed, int line, Function* function) {
  const Operand wide = NewRegister(Type::kB64, function);
  Insert(is_signed ? "cvt.s64.s32" : "cvt.u64.u32", line, {wide, narrow}, function);
  return wide;
}

// The index times the bytes of an element, in 32 bits as ptxas computes it and then extended: only
// shared and local addresses, which have 32 bits themselves, take a negative one.
Operand Scaled(Operand index, const Symbol& variable, int line, Function* function) {
  const uint64_t constant = index.bits * variable.element_bytes;
  index.address = false;
  index.bits = 0;
  if (Bits(function->registers[index.index]) == 64) {
    const Operand narrow = NewRegister(Type::kB32, function);
    Insert("cvt.u32.u64", line, {narrow, index}, function);
    index = narrow;
  }
  const Operand product = NewRegister(Type::kB32, function);
  const Operand sum = NewRegister(Type::kB32, function);
  Insert("mul.lo.u32", line, {product, index, Immediate(variable.element_bytes)}, function);
  Insert("add.u32", line, {sum, product, Immediate(static_cast<uint32_t>(constant))}, function);
  const bool is_signed = variable.space == Space::kShared || variable.space == Space::kLocal;
  return Widened(sum, is_signed, line, function);
}

}  // namespace

// Innermost scope first; module scope is behind all of them.
bool Parser::FindSymbol(std::string_view name, Operand* out) {
  for (size_t i = scopes_.size(); i-- > 0;) {
    const uint32_t* const found = base::FindOrNull(scopes_[i].symbols, name);
    if (found == nullptr) continue;
    out->kind = Operand::Kind::kSymbol;
    out->index = *found;
    return true;
  }
  const uint32_t* const found = base::FindOrNull(symbol_by_name_, name);
  if (found == nullptr) return false;
  out->kind = Operand::Kind::kSymbol;
  out->index = *found;
  out->module_scope = true;
  return true;
}

// The sign is a token of its own, and floating-point numbers are bits already.
Operand Parser::ParseNumber() {
  const bool minus = Accept('-');
  const bool complement = !minus && Accept('~');
  const Token token = lex_.Next();
  Operand operand;
  operand.kind = Operand::Kind::kImmediate;
  operand.bits = token.bits;
  switch (token.kind) {
    case Token::Kind::kInteger:
      if (minus) operand.bits = 0 - operand.bits;
      if (complement) operand.bits = ~operand.bits;
      break;
    case Token::Kind::kFloat32:
      operand.count = 1;
      if (minus) operand.bits ^= 1ull << 31;
      break;
    case Token::Kind::kFloat64:
      operand.count = 2;
      if (minus) operand.bits ^= 1ull << 63;
      break;
    default:
      Fail(token.line, "Parsing error near '" + std::string(token.text) + "'");
  }
  return operand;
}

Operand Parser::ParseName(const Token& token, const Instruction& instruction) {
  Operand operand;
  if (token.text == "_") {
    operand.kind = Operand::Kind::kSink;
    return operand;
  }
  if (FindRegister(token.text, &operand.index)) {
    operand.kind = Operand::Kind::kRegister;
    return operand;
  }
  if (instruction.op >= Op::kVadd && instruction.op <= Op::kVset && token.text.size() > 3) {
    // A part of a register: %r1.b0 to .b3, .h0, .h1.
    const std::string_view part = token.text.substr(token.text.size() - 3);
    const bool byte = part[1] == 'b' && part[2] >= '0' && part[2] <= '3';
    const bool half = part[1] == 'h' && part[2] >= '0' && part[2] <= '1';
    if (part[0] == '.' && (byte || half) &&
        FindRegister(token.text.substr(0, token.text.size() - 3), &operand.index)) {
      operand.kind = Operand::Kind::kRegister;
      operand.bits = part[2] - '0' + (byte ? 1 : 5);
      return operand;
    }
  }
  const Special special = SpecialFromName(token.text);
  if (special != Special::kNone) {
    operand.kind = Operand::Kind::kSpecial;
    operand.index = static_cast<uint32_t>(special);
    return operand;
  }
  const bool jumps = instruction.op == Op::kBra || instruction.op == Op::kBrx;
  if (!jumps && FindSymbol(token.text, &operand)) return operand;
  if (!jumps && function_by_name_.count(token.text) != 0) {
    operand.kind = Operand::Kind::kFunction;
    operand.index = function_by_name_[token.text];
    function_uses_.emplace_back(std::string(token.text), token.line);
    return operand;
  }
  if (!jumps) {
    Fail(token.line, "Unknown symbol '" + std::string(token.text) + "'");
    return operand;
  }
  operand.kind = Operand::Kind::kLabel;
  // ParseInstruction gives the use its operand once that has a place.
  scopes_.back().uses.push_back({token.text, kNoIndex, 0, 0, token.line});
  return operand;
}

// "[object, {x, y}]" of textures and surfaces: a vector whose first element is the object.
Operand Parser::ParseCoordinates(Operand object, const Instruction& instruction) {
  std::vector<Operand> elements = {object};
  const bool several = Accept('{');
  do {
    const Token& token = lex_.Peek();
    elements.push_back(token.kind == Token::Kind::kWord ? ParseName(lex_.Next(), instruction)
                                                        : ParseNumber());
  } while (several && error_.empty() && elements.size() < 8 && Accept(','));
  if (several) Expect('}');
  Expect(']');
  Operand operand;
  operand.kind = Operand::Kind::kVector;
  operand.address = true;
  operand.index = static_cast<uint32_t>(function_->operands.size());
  operand.count = static_cast<uint32_t>(elements.size());
  function_->operands.insert(function_->operands.end(), elements.begin(), elements.end());
  return operand;
}

// "[base]", "[base + offset - offset]", or "[object, coordinates]" once the '[' is read.
Operand Parser::ParseAddress(const Instruction& instruction) {
  Operand operand;
  if (lex_.Peek().kind == Token::Kind::kWord) {
    const Token token = lex_.Next();
    if (FindRegister(token.text, &operand.index)) {
      operand.kind = Operand::Kind::kRegister;
    } else if (!FindSymbol(token.text, &operand)) {
      Fail(token.line, "Unknown symbol '" + std::string(token.text) + "'");
    }
  } else {
    operand = ParseNumber();
    if (operand.count != 0) Fail(lex_.Peek().line, "An address is no floating-point number");
  }
  if (Accept(',')) return ParseCoordinates(operand, instruction);
  operand.address = true;
  uint64_t offset = operand.kind == Operand::Kind::kImmediate ? operand.bits : 0;
  while (error_.empty() && !Accept(']')) {
    const bool minus = Accept('-');
    if (!minus) Expect('+');
    const bool also_minus = Accept('-');
    const uint64_t value = ExpectInteger();
    offset += minus != also_minus ? 0 - value : value;
  }
  operand.bits = offset;
  return operand;
}

// "variable[register + offset]" and "variable[offset]", which count elements (of a vector type its
// components): the address is computed by instructions before this one. Those need no guard, for
// an address that nothing uses harms nobody.
Operand Parser::ParseIndexed(Operand variable, const Instruction& instruction) {
  const int line = lex_.Peek().line;
  const Symbol& symbol =
      variable.module_scope ? module_->symbols[variable.index] : function_->symbols[variable.index];
  Expect('[');
  const Operand index = ParseAddress(instruction);
  if (!error_.empty()) return index;
  if (index.kind == Operand::Kind::kImmediate) {
    variable.address = true;
    variable.bits = index.bits * symbol.element_bytes;
    return variable;
  }
  const bool integer = index.kind == Operand::Kind::kRegister &&
                       !IsFloat(function_->registers[index.index]) &&
                       (RegisterBits(index) == 32 || RegisterBits(index) == 64);
  if (!integer || symbol.space == Space::kParam) {
    Fail(line, "Only an integer register can index a variable, and no parameter");
    return index;
  }
  const Operand base = NewRegister(Type::kB64, function_);
  const Operand offset = Scaled(index, symbol, line, function_);
  Operand address = NewRegister(Type::kB64, function_);
  Insert("mov.u64", line, {base, variable}, function_);
  Insert("add.s64", line, {address, base, offset}, function_);
  address.address = true;
  return address;
}

// "{a, b, ...}" once the '{' is read.
Operand Parser::ParseVector(const Instruction& instruction) {
  std::vector<Operand> elements;
  while (error_.empty() && !Accept('}')) {
    const Token& token = lex_.Peek();
    if (token.kind == Token::Kind::kWord) {
      elements.push_back(ParseName(lex_.Next(), instruction));
    } else {
      elements.push_back(ParseNumber());
    }
    if (elements.size() > 64) Fail(token.line, "Vector too long");
    if (!lex_.Peek().Is('}')) Expect(',');
  }
  Operand operand;
  operand.kind = Operand::Kind::kVector;
  operand.index = static_cast<uint32_t>(function_->operands.size());
  operand.count = static_cast<uint32_t>(elements.size());
  function_->operands.insert(function_->operands.end(), elements.begin(), elements.end());
  return operand;
}

// Whatever an instruction may name; its row's signature decides later what fits.
Operand Parser::ParseOperand(const Instruction& instruction) {
  if (Accept('[')) return ParseAddress(instruction);
  if (Accept('{')) return ParseVector(instruction);
  if (Accept('(')) {  // some compilers write (0) or ( 1 )
    Operand operand = ParseNumber();
    Expect(')');
    return operand;
  }
  const bool negated = Accept('!');
  const Token token = lex_.Peek();
  if (token.kind != Token::Kind::kWord) {
    Operand operand = ParseNumber();
    if (negated) operand.bits = operand.bits == 0;
    return operand;
  }
  lex_.Next();
  Operand operand = ParseName(token, instruction);
  operand.negated = negated;
  if (operand.kind == Operand::Kind::kSymbol && lex_.Peek().Is('['))
    return ParseIndexed(operand, instruction);
  if (Accept('|')) {
    const Token second = ExpectWord();
    if (second.text == "_") return operand;
    if (!FindRegister(second.text, &operand.second) ||
        function_->registers[operand.second] != Type::kPred) {
      Fail(second.line, "'" + std::string(second.text) + "' is no predicate");
    }
  } else if (operand.kind == Operand::Kind::kSymbol && lex_.Peek().Is('+')) {
    lex_.Next();
    operand.bits = ExpectInteger();
  }
  return operand;
}

}  // namespace softgpu::ptx
