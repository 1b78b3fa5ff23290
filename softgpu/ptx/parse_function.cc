// Function headers: results, parameters, directives; and the kernels of a parsed module.
#include <algorithm>

#include "softgpu/ptx/cfg.h"
#include "softgpu/ptx/insert.h"
#include "softgpu/ptx/parser.h"

namespace softgpu::ptx {
namespace {

uint64_t RoundUp(uint64_t value, uint64_t align) { return (value + align - 1) / align * align; }

}  // namespace

uint32_t Parser::FunctionIndex(std::string_view name) {
  const auto [it, added] =
      function_by_name_.emplace(name, static_cast<uint32_t>(module_->functions.size()));
  if (added) {
    module_->functions.push_back(std::make_unique<Function>());
    module_->functions.back()->name = std::string(name);
  }
  return it->second;
}

void Parser::ParseFunction(bool entry, const Linkage& linkage) {
  Function header;
  function_ = &header;
  header.entry = entry;
  scopes_.assign(1, Scope{});
  if (!entry && lex_.Peek().Is('(')) ParseFormals(true);
  const Token name = ExpectWord();
  if (lex_.Peek().Is('(')) ParseFormals(false);
  ParseFunctionDirectives();
  header.name = std::string(name.text);
  const uint32_t index = FunctionIndex(name.text);
  Function* function = module_->functions[index].get();
  const bool body = lex_.Peek().Is('{');
  if (function->defined && body)
    Fail(name.line, "Duplicate definition of function '" + header.name + "'");
  if (!function->defined) *function = std::move(header);
  function_ = function;
  if (body) {
    function->defined = true;
    ParseBody();
    if (error_.empty()) BuildControlFlow(function);
  } else if (!Accept(';') && entry) {
    Expect(';');  // as the vendor's, this parser does without it behind a prototype of a function
  }
  scopes_.clear();
  function_ = nullptr;
}

void Parser::ParseFunctionDirectives() {
  while (lex_.Peek().kind == Token::Kind::kWord && lex_.Peek().text[0] == '.' &&
         !lex_.Peek().BeginsDeclaration()) {
    const Token token = lex_.Next();
    if (token.Is(".noreturn")) {
      function_->noreturn = true;
      continue;
    }
    if (token.Is(".pragma")) {
      SkipStatement();
      continue;
    }
    uint64_t values[3] = {1, 1, 1};
    for (int i = 0; lex_.Peek().kind == Token::Kind::kInteger; ++i) {
      const uint64_t value = ExpectInteger();
      if (value > 0x7fffffff) Fail(token.line, "Number too large");
      if (i < 3) values[i] = value;
      if (!Accept(',')) break;
    }
    const uint64_t product =
        std::min<uint64_t>(1024, values[0] * std::min<uint64_t>(values[1] * values[2], 1024));
    if (token.Is(".maxntid")) {
      function_->threads_max = static_cast<uint32_t>(product);
    } else if (token.Is(".reqntid")) {
      function_->required_block = {static_cast<uint32_t>(values[0]),
                                   static_cast<uint32_t>(values[1]),
                                   static_cast<uint32_t>(values[2])};
      function_->threads_max = static_cast<uint32_t>(product);
    }
  }
}

// A parameter in a register is one in memory, which the function loads where it begins: the
// register hides the variable of its name.
void Parser::ParseFormals(bool results) {
  Expect('(');
  while (error_.empty() && !Accept(')')) {
    const Token space = ExpectWord();
    const bool in_register = space.Is(".reg") && !results && !function_->entry;
    if (!space.Is(".param") && !in_register) {
      return Fail(space.line,
                  "Formals in '" + std::string(space.text) + "' space are not supported");
    }
    Declarator declarator;
    if (!ParseDeclarator(&declarator)) return;
    AddFormal(declarator, results);
    if (in_register && error_.empty()) {
      Operand to;
      to.kind = Operand::Kind::kRegister;
      scopes_.back().registers[declarator.name] = RegisterRange{declarator.type, 0, {}};
      FindRegister(declarator.name, &to.index);
      Append("ld.param.b" + std::to_string(declarator.bytes * 8), declarator.line,
             {to, AddressOf(function_->parameters.back())}, function_);
    }
    if (!lex_.Peek().Is(')')) Expect(',');
  }
}

void Parser::AddFormal(const Declarator& declarator, bool result) {
  if (declarator.bytes > kParamBytesMax) return Fail(declarator.line, "Parameter too large");
  if (!function_->entry) {
    const uint32_t index = AddLocalSymbol(declarator, Space::kParam);
    (result ? function_->results : function_->parameters).push_back(index);
    return;
  }
  const uint64_t offset = RoundUp(function_->param_bytes, declarator.align);
  if (offset + declarator.bytes > kParamBytesMax) {
    return Fail(declarator.line, "Formal parameter space overflowed");
  }
  Symbol symbol{std::string(declarator.name), Space::kParam, declarator.bytes, declarator.align,
                Bytes(declarator.type)};
  symbol.offset = static_cast<uint32_t>(offset);
  const uint32_t index = static_cast<uint32_t>(function_->symbols.size());
  function_->symbols.push_back(std::move(symbol));
  function_->parameters.push_back(index);
  scopes_[0].symbols[declarator.name] = index;
  function_->param_info.push_back(
      {static_cast<uint32_t>(offset), static_cast<uint32_t>(declarator.bytes), declarator.align});
  function_->param_bytes = static_cast<uint32_t>(offset + declarator.bytes);
}

void Parser::MakeKernels() {
  for (const std::unique_ptr<Function>& function : module_->functions) {
    if (!function->entry || !function->defined) continue;
    std::unique_ptr<KernelImpl> kernel = std::make_unique<KernelImpl>(module_, function.get());
    if (kernel->static_shared_bytes() > kSharedBytesMax) {
      return Fail(1, "Entry function '" + function->name + "' uses too much shared data");
    }
    module_->kernels_.push_back(std::move(kernel));
  }
}

}  // namespace softgpu::ptx
