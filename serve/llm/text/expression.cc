#include "serve/llm/text/expression.h"

#include <optional>

#include "absl/strings/str_cat.h"

namespace serve::llm {
namespace {

// Insides of classes. PCRE2's own `\s` has a character more (U+180E), and its `\w` fewer.
constexpr std::string_view kSpaces = R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a})"
                                     R"(\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view kDigits = R"(\p{Nd})";
constexpr std::string_view kWords = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";

// Escapes that mean the same to both. Backslashes before other letters or digits are refused.
constexpr std::string_view kSameEscapes = "nrtf";
constexpr std::string_view kBracedEscapes = "pPx";
constexpr std::string_view kSameGroups[] = {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:"};

bool IsLetterOrDigit(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9');
}

std::string_view InsideOf(char escaped) {
  switch (escaped | 0x20) {
    case 's':
      return kSpaces;
    case 'd':
      return kDigits;
    case 'w':
      return kWords;
    default:
      return {};
  }
}

class Speller {
 public:
  explicit Speller(std::string_view expression) : from_(expression) {}

  // Nothing: the expression is not supported.
  std::optional<std::string> Spelled() {
    while (at_ < from_.size()) {
      const bool fine = from_[at_] == '\\' ? Escape() : in_class_ ? InClass() : Outside();
      if (!fine) return std::nullopt;
    }
    return spelled_;
  }

 private:
  std::string_view rest() const { return from_.substr(at_); }
  bool Keep(size_t letters) {
    spelled_.append(from_.substr(at_, letters));
    at_ += letters;
    return true;
  }

  bool Escape() {
    if (at_ + 1 == from_.size()) return false;
    const char escaped = from_[at_ + 1];
    const std::string inside(InsideOf(escaped));
    if (inside.empty()) {
      if (kBracedEscapes.find(escaped) != kBracedEscapes.npos) return Braced();
      return (!IsLetterOrDigit(escaped) || kSameEscapes.find(escaped) != kSameEscapes.npos) &&
             Keep(2);
    }
    const bool negated = escaped < 'a';
    if (negated && in_class_) return false;
    absl::StrAppend(&spelled_,
                    in_class_ ? inside : absl::StrCat(negated ? "[^" : "[", inside, "]"));
    at_ += 2;
    return true;
  }

  bool Braced() {
    const size_t end = rest().find('}');
    return rest().substr(2, 1) == "{" && end != rest().npos && Keep(end + 1);
  }

  // Oniguruma has classes within classes and their intersections.
  bool InClass() {
    if (from_[at_] == '[' || rest().substr(0, 2) == "&&") return false;
    if (from_[at_] == ']') in_class_ = false;
    return Keep(1);
  }

  bool Outside() {
    const std::string_view now = rest();
    if (now[0] == '[') {
      in_class_ = true;
      // A bracket that closes at once is a character to PCRE2.
      const size_t opening = now.substr(0, 2) == "[^" ? 2 : 1;
      return now.substr(opening, 1) != "]" && Keep(opening);
    }
    if (now.substr(0, 2) == "(?") {
      for (const std::string_view same : kSameGroups) {
        if (now.substr(0, same.size()) == same) return Keep(same.size());
      }
      return false;
    }
    // Verbs; and a range that is possessive to PCRE2, but repeated to Oniguruma.
    return now.substr(0, 2) != "(*" && now.substr(0, 2) != "}+" && Keep(1);
  }

  const std::string_view from_;
  size_t at_ = 0;
  bool in_class_ = false;
  std::string spelled_;
};

}  // namespace

absl::StatusOr<std::string> Pcre2OfOnigurumaUntrusted(std::string_view expression) {
  const std::optional<std::string> spelled =
      expression.size() <= kExpressionBytesMax ? Speller(expression).Spelled() : std::nullopt;
  if (!spelled.has_value())
    return absl::UnimplementedError("splits text by an expression that is not supported");
  return *spelled;
}

std::string ExpressionOfText(std::string_view text) {
  std::string expression;
  for (const char letter : text) {
    const bool plain = IsLetterOrDigit(letter) || static_cast<uint8_t>(letter) >= 0x80;
    if (!plain) expression.push_back('\\');
    expression.push_back(letter);
  }
  return expression;
}

}  // namespace serve::llm
