#include "serve/llm/text/splitter.h"

#include <optional>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "absl/strings/str_cat.h"

namespace serve::llm {
namespace {

constexpr size_t kStagesMax = 16;
constexpr size_t kExpressionBytesMax = 4096;
constexpr uint32_t kStepsMax = 10'000'000;
constexpr uint32_t kHeapKibibytesMax = 64 * 1024;

// White_Space of Unicode, as the inside of a class.
constexpr std::string_view kSpaces = R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a})"
                                     R"(\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";

// Nothing: the expression has `\S` within a class, which no list of characters says.
std::optional<std::string> WithSpacesSpelledOut(std::string_view expression) {
  const std::string spaces(kSpaces);
  std::string text;
  bool in_class = false;
  for (size_t i = 0; i < expression.size(); ++i) {
    const char letter = expression[i];
    if (letter != '\\' || i + 1 == expression.size()) {
      if (letter == '[') in_class = true;
      if (letter == ']') in_class = false;
      text.push_back(letter);
      continue;
    }
    const char escaped = expression[++i];
    if (escaped == 's') {
      absl::StrAppend(&text, in_class ? spaces : absl::StrCat("[", spaces, "]"));
    } else if (escaped == 'S') {
      if (in_class) return std::nullopt;
      absl::StrAppend(&text, "[^", spaces, "]");
    } else {
      text.append({letter, escaped});
    }
  }
  return text;
}

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatch {
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};
struct FreeContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

// A context of each call: PCRE2's may not be shared between threads.
std::unique_ptr<pcre2_match_context, FreeContext> BoundedContext() {
  std::unique_ptr<pcre2_match_context, FreeContext> context(pcre2_match_context_create(nullptr));
  pcre2_set_match_limit(context.get(), kStepsMax);
  pcre2_set_heap_limit(context.get(), kHeapKibibytesMax);
  return context;
}

absl::Status CannotSplit(int error) {
  // PCRE2 has a range of numbers for faults of UTF-8.
  if (error <= PCRE2_ERROR_UTF8_ERR1 && error >= PCRE2_ERROR_UTF8_ERR21)
    return absl::InvalidArgumentError("the text is not valid UTF-8");
  return absl::ResourceExhaustedError(
      "the tokenizer's expression takes too many steps for this text; send it in parts");
}

}  // namespace

struct Splitter::Expression {
  std::unique_ptr<pcre2_code, FreeCode> code;

  // PCRE2 checks the whole subject at each call unless told that it is valid, which would make
  // the time quadratic: `checked` is set after the first.
  absl::Status Cut(std::string_view text, bool checked,
                   std::vector<std::string_view>* pieces) const {
    const std::unique_ptr<pcre2_match_data, FreeMatch> match(
        pcre2_match_data_create_from_pattern(code.get(), nullptr));
    const std::unique_ptr<pcre2_match_context, FreeContext> context = BoundedContext();
    const PCRE2_SPTR subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    size_t done = 0;
    while (done < text.size()) {
      const uint32_t options = PCRE2_NOTEMPTY | (checked || done > 0 ? PCRE2_NO_UTF_CHECK : 0);
      const int found =
          pcre2_match(code.get(), subject, text.size(), done, options, match.get(), context.get());
      if (found == PCRE2_ERROR_NOMATCH) break;
      if (found < 0) return CannotSplit(found);
      const size_t begin = pcre2_get_ovector_pointer(match.get())[0];
      const size_t end = pcre2_get_ovector_pointer(match.get())[1];
      if (begin < done || end <= begin) break;  // `\K` in an expression can move the borders
      if (begin > done) pieces->push_back(text.substr(done, begin - done));
      pieces->push_back(text.substr(begin, end - begin));
      done = end;
    }
    if (done < text.size()) pieces->push_back(text.substr(done));
    return absl::OkStatus();
  }
};

absl::StatusOr<Splitter> Splitter::MakeUntrusted(const std::vector<std::string>& stages) {
  if (stages.size() > kStagesMax)
    return absl::UnimplementedError("splits text in more than 16 stages, which is not supported");
  Splitter splitter;
  for (const std::string& stage : stages) {
    const std::optional<std::string> spelled = WithSpacesSpelledOut(stage);
    if (!spelled.has_value() || stage.size() > kExpressionBytesMax)
      return absl::UnimplementedError("splits text by an expression that is not supported");
    int error = 0;
    PCRE2_SIZE at = 0;
    const std::shared_ptr<Expression> made = std::make_shared<Expression>();
    made->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(spelled->data()), spelled->size(),
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &at,
                                   nullptr));
    if (made->code == nullptr)
      return absl::UnimplementedError("splits text by an expression that is not supported");
    splitter.stages_.push_back(made);
  }
  return splitter;
}

absl::StatusOr<std::vector<std::string_view>> Splitter::Split(std::string_view text) const {
  std::vector<std::string_view> pieces;
  if (!text.empty()) pieces.push_back(text);
  bool checked = false;
  for (const std::shared_ptr<const Expression>& stage : stages_) {
    std::vector<std::string_view> finer;
    for (const std::string_view piece : pieces) {
      if (const absl::Status cut = stage->Cut(piece, checked, &finer); !cut.ok()) return cut;
    }
    pieces = std::move(finer);
    checked = true;
  }
  return pieces;
}

}  // namespace serve::llm
