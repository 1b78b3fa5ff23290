// Reads no further than a linker needs: bodies and initial values are passed over by their
// brackets, and only the words in them are noted.
#include "softgpu/ptx/link_item.h"

#include <algorithm>

#include "softgpu/ptx/lexer.h"
#include "softgpu/ptx/parser.h"

namespace softgpu::ptx {
namespace {

// Stands between results and parameters in a signature; no parameter has this size.
constexpr uint64_t kSignatureMark = ~0ull;

Space SpaceOf(const Token& token) {
  if (token.Is(".global")) return Space::kGlobal;
  if (token.Is(".const")) return Space::kConst;
  if (token.Is(".shared")) return Space::kShared;
  return Space::kGeneric;
}

// Reads a text item by item. The first error stops the lexer, so that every loop ends.
class Scanner {
 public:
  Scanner(std::string_view text, LinkText* out) : text_(text), lex_(text), out_(out) {}

  bool Run() {
    while (!AtEnd()) ScanTopLevel();
    if (error_.empty() && out_->version == 0) Fail("Missing .version directive at start of file");
    return error_.empty();
  }
  const std::string& error() const { return error_; }

 private:
  bool AtEnd() const { return lex_.Peek().kind == Token::Kind::kEnd; }

  void Fail(std::string sentence) {
    if (error_.empty()) {
      error_ = "ptxas application ptx input, line " + std::to_string(lex_.Peek().line) +
               "; fatal   : " + std::move(sentence);
    }
    lex_.Stop();
  }
  void FailNear() {
    Fail(AtEnd() ? "Parsing error near end of file"
                 : "Parsing error near '" + std::string(lex_.Peek().text) + "'");
  }

  // The offset of the next token: where a piece of text begins or ends.
  size_t Here() const {
    return AtEnd() ? text_.size() : static_cast<size_t>(lex_.Peek().text.data() - text_.data());
  }
  std::string_view From(size_t begin) const {
    return text_.substr(begin, std::max(begin, Here()) - begin);
  }
  // The next token; words among those of bodies and initial values are noted.
  Token TakeUse() {
    const Token token = lex_.Next();
    if (token.kind == Token::Kind::kWord && token.text[0] != '.') out_->used.insert(token.text);
    return token;
  }

  uint64_t TakeInteger() {
    if (lex_.Peek().kind != Token::Kind::kInteger) {
      FailNear();
      return 0;
    }
    return lex_.Next().bits;
  }

  void ScanTopLevel() {
    const size_t begin = Here();
    const LinkItem::Linkage linkage = TakeLinkage();
    const Token token = lex_.Peek();
    if (token.Is(".version")) {
      ScanVersion();
    } else if (token.Is(".target")) {
      ScanTarget();
    } else if (token.Is(".address_size")) {
      lex_.Next();
      TakeInteger();
    } else if (token.Is(".file")) {
      ScanFile(begin);
    } else if (token.Is(".section")) {
      SkipBlock();  // debugging information: no executor reads it
    } else if (token.Is(".entry") || token.Is(".func")) {
      ScanFunction(linkage);
    } else if (SpaceOf(token) != Space::kGeneric) {
      ScanVariables(linkage);
    } else if (!AtEnd()) {
      ScanOther(begin);
    }
  }

  // A directive in a name's place would be renamed wherever the text has that directive.
  static bool IsName(const Token& token) {
    return token.kind == Token::Kind::kWord && token.text[0] != '.';
  }

  // The directives before a declaration; the last one counts.
  LinkItem::Linkage TakeLinkage() {
    LinkItem::Linkage linkage = LinkItem::Linkage::kNone;
    for (;; lex_.Next()) {
      const Token& token = lex_.Peek();
      if (token.Is(".visible"))
        linkage = LinkItem::Linkage::kVisible;
      else if (token.Is(".weak"))
        linkage = LinkItem::Linkage::kWeak;
      else if (token.Is(".common"))
        linkage = LinkItem::Linkage::kCommon;
      else if (token.Is(".extern"))
        linkage = LinkItem::Linkage::kExtern;
      else
        return linkage;
    }
  }

  void ScanVersion() {
    lex_.Next();
    const std::string_view number = lex_.Peek().text;
    const size_t dot = number.find('.');
    if (lex_.Peek().kind != Token::Kind::kFloat64 || dot == 0 || dot > 2 || number.size() < dot + 2)
      return Fail("Bad .version '" + std::string(number) + "'");
    int major = 0;
    for (char digit : number.substr(0, dot)) major = major * 10 + (digit - '0');
    out_->version = major * 10 + std::clamp(number[dot + 1] - '0', 0, 9);
    lex_.Next();
  }

  // ".target sm_80, debug": only the architecture matters.
  void ScanTarget() {
    do {
      lex_.Next();
      const std::string_view word = lex_.Peek().text;
      if (lex_.Peek().kind != Token::Kind::kWord) return FailNear();
      if (word.starts_with("sm_")) {
        out_->target = word;
        out_->architecture = 0;
        for (char digit : word.substr(3)) {
          if (digit >= '0' && digit <= '9' && out_->architecture < 10000)
            out_->architecture = out_->architecture * 10 + (digit - '0');
        }
      }
      lex_.Next();
    } while (lex_.Peek().Is(','));
  }

  void ScanFile(size_t begin) {
    lex_.Next();
    const uint64_t number = TakeInteger();
    if (number >= 1u << 20) return Fail("The number of a .file is too large");
    out_->files = std::max(out_->files, number + 1);
    if (lex_.Peek().kind != Token::Kind::kString) return Fail("File name expected");
    lex_.Next();
    while (lex_.Peek().Is(',')) {
      lex_.Next();
      TakeInteger();
    }
    AddOther(begin);
  }

  // Copies a directive that means nothing to a linker; the parser may know the directive.
  void ScanOther(size_t begin) {
    while (!AtEnd() && !lex_.Peek().Is(';')) lex_.Next();
    lex_.Next();
    AddOther(begin);
  }

  void AddOther(size_t begin) {
    LinkItem item;
    item.head = From(begin);
    out_->items.push_back(std::move(item));
  }

  // From a '{' that is still to come to the '}' that closes it.
  void SkipBlock() {
    while (!AtEnd() && !lex_.Peek().Is('{')) lex_.Next();
    size_t depth = 0;
    do {
      if (AtEnd()) return Fail("Parsing error near end of file: '}' expected");
      const Token token = TakeUse();
      depth += token.Is('{');
      depth -= token.Is('}');
    } while (depth > 0);
  }

  // ".func (results) name (parameters) directives", then a body or ';', which a function's
  // prototype may lack.
  void ScanFunction(LinkItem::Linkage linkage) {
    LinkItem item;
    const size_t begin = Here();
    item.kind = lex_.Next().Is(".entry") ? LinkItem::Kind::kEntry : LinkItem::Kind::kFunction;
    item.linkage = linkage;
    if (lex_.Peek().Is('(')) ScanFormals(&item);
    item.signature.push_back(kSignatureMark);
    if (!IsName(lex_.Peek())) return FailNear();
    item.name = lex_.Next().text;
    if (lex_.Peek().Is('(')) ScanFormals(&item);
    const bool is_function = item.kind == LinkItem::Kind::kFunction;
    while (!AtEnd() && !lex_.Peek().Is('{') && !lex_.Peek().Is(';')) {
      if (is_function && lex_.Peek().BeginsDeclaration()) break;
      const bool pragma = lex_.Next().Is(".pragma");
      if (!pragma) continue;
      while (!AtEnd() && !lex_.Peek().Is(';')) lex_.Next();
      lex_.Next();
    }
    item.head = From(begin);
    item.defined = lex_.Peek().Is('{');
    const size_t body = Here();
    if (item.defined) {
      SkipBlock();
      item.definition = From(body);
    } else if (lex_.Peek().Is(';')) {
      lex_.Next();
    } else if (!is_function) {
      return Fail("Parsing error near end of file: ';' expected");
    }
    if (error_.empty()) out_->items.push_back(std::move(item));
  }

  // Types of one size are one for a call, so a signature holds sizes.
  void ScanFormals(LinkItem* item) {
    do {
      lex_.Next();
      if (lex_.Peek().Is(')')) break;
      LinkItem formal;
      uint64_t unit = 1;
      lex_.Next();  // .param or .reg
      TakeAttributes(&unit);
      TakeName(unit, &formal);
      item->signature.push_back(formal.bytes);
    } while (error_.empty() && lex_.Peek().Is(','));
    if (!lex_.Peek().Is(')')) return FailNear();
    lex_.Next();
  }

  void ScanVariables(LinkItem::Linkage linkage) {
    LinkItem item;
    const size_t begin = Here();
    uint64_t unit = 1;
    item.kind = LinkItem::Kind::kVariable;
    item.linkage = linkage;
    item.space = SpaceOf(lex_.Next());
    TakeAttributes(&unit);
    item.prefix = From(begin);
    do {
      const size_t head = Here();
      TakeName(unit, &item);
      item.head = From(head);
      item.defined = linkage != LinkItem::Linkage::kExtern;
      const size_t value = Here();
      if (lex_.Peek().Is('=')) TakeValue();
      item.definition = From(value);
      if (!lex_.Peek().Is(',') && !lex_.Peek().Is(';')) return FailNear();
      if (error_.empty()) out_->items.push_back(item);
    } while (error_.empty() && lex_.Next().Is(','));
  }

  // Directives of a declaration; `unit` becomes the bytes of one element.
  void TakeAttributes(uint64_t* unit) {
    uint64_t vector = 1;
    while (lex_.Peek().kind == Token::Kind::kWord && lex_.Peek().text[0] == '.') {
      const std::string_view word = lex_.Next().text;
      const Type type = TypeFromName(word.substr(1));
      if (type != Type::kNone) *unit = std::max<uint32_t>(Bytes(type), 1);
      if (word == ".v2" || word == ".v4") vector = word[2] - '0';
      if (word == ".align") TakeInteger();
      if (word != ".attribute") continue;
      while (!AtEnd() && !lex_.Peek().Is(')')) lex_.Next();
      lex_.Next();
    }
    *unit *= vector;
  }

  // A name and its dimensions; the size stays 0 when one of them is open.
  void TakeName(uint64_t unit, LinkItem* item) {
    if (!IsName(lex_.Peek())) return FailNear();
    item->name = lex_.Next().text;
    item->bytes = unit;
    while (lex_.Peek().Is('[')) {
      lex_.Next();
      const uint64_t count = lex_.Peek().Is(']') ? 0 : TakeInteger();
      if (count > kVariableBytesMax || item->bytes * count > kVariableBytesMax)
        return Fail("Variable '" + std::string(item->name) + "' is too large");
      item->bytes *= count;
      if (!lex_.Peek().Is(']')) return FailNear();
      lex_.Next();
    }
  }

  // "= ..." up to the ',' or ';' behind it.
  void TakeValue() {
    size_t depth = 0;
    while (!AtEnd()) {
      const Token& token = lex_.Peek();
      if (depth == 0 && (token.Is(',') || token.Is(';'))) return;
      depth += token.Is('{') || token.Is('(');
      if ((token.Is('}') || token.Is(')')) && depth-- == 0) return FailNear();
      TakeUse();
    }
  }

  const std::string_view text_;
  Lexer lex_;
  LinkText* const out_;
  std::string error_;
};

}  // namespace

bool ScanLinkTextUntrusted(std::string_view ptx, LinkText* text, std::string* error) {
  Scanner scanner(ptx, text);
  const bool whole = scanner.Run();
  if (!whole) *error = scanner.error();
  return whole;
}

}  // namespace softgpu::ptx
