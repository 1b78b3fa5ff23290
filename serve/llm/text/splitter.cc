#include "serve/llm/text/splitter.h"

#include <algorithm>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "serve/llm/text/expression.h"
#include "serve/llm/text/utf8.h"

namespace serve::llm {
namespace {

constexpr size_t kStagesMax = 16;
constexpr uint32_t kHeapKibibytesMax = 64 * 1024;
constexpr uint32_t kStepsMin = 64;
constexpr size_t kWindowMin = 64;  // bytes
// A step looks at no more than the window. An attempt at each byte costs the least product; the
// rest suffices for a run of 32,000 spaces, which the usual expressions go over a step for each.
constexpr uint64_t kCostOfByte = uint64_t{kStepsMin} * kWindowMin;
constexpr uint64_t kCostOfText = uint64_t{1} << 33;

struct FreeMatch {
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};
struct FreeContext {
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

absl::Status TooManySteps() {
  return absl::ResourceExhaustedError(
      "the tokenizer's expression takes too many steps for this text; send it in parts");
}

class Budget {
 public:
  explicit Budget(size_t bytes) : left_(kCostOfText + kCostOfByte * bytes) {}

  // False: not so much is left.
  bool Take(uint64_t steps, uint64_t window) {
    const bool enough = steps <= left_ / window;
    if (enough) left_ -= steps * window;
    return enough;
  }

 private:
  uint64_t left_;
};

// An expression's matches in one piece of text that is valid UTF-8.
class Matcher {
 public:
  Matcher(const pcre2_code* code, std::string_view text, Budget* budget)
      : code_(code),
        text_(text),
        budget_(budget),
        match_(pcre2_match_data_create_from_pattern(code, nullptr)),
        context_(pcre2_match_context_create(nullptr)) {
    // Each level of depth costs a step, so steps bound the depth.
    pcre2_set_heap_limit(context_.get(), kHeapKibibytesMax);
  }

  // Bytes of the match that begins at `at`; 0: none begins there.
  absl::StatusOr<size_t> At(size_t at) {
    uint32_t steps = kStepsMin;
    size_t window = kWindowMin;
    while (true) {
      if (!budget_->Take(steps, window)) return TooManySteps();
      const int found = Try(at, steps, window);
      if (found == PCRE2_ERROR_NOMATCH) return 0;
      if (found == PCRE2_ERROR_PARTIAL) {
        window *= 2;
      } else if (found == PCRE2_ERROR_MATCHLIMIT) {
        if (steps > UINT32_MAX / 2) return TooManySteps();
        steps *= 2;
      } else if (found < 0) {
        return TooManySteps();
      } else {
        return pcre2_get_ovector_pointer(match_.get())[1] - at;
      }
    }
  }

 private:
  int Try(size_t at, uint32_t steps, size_t window) {
    const bool all = text_.size() - at <= window;
    size_t end = all ? text_.size() : at + window;
    while (!all && (static_cast<uint8_t>(text_[end]) & 0xc0) == 0x80) --end;  // whole characters
    pcre2_set_match_limit(context_.get(), steps);
    // PCRE2 would check the text at each call.
    const uint32_t options =
        PCRE2_ANCHORED | PCRE2_NOTEMPTY | PCRE2_NO_UTF_CHECK | (all ? 0 : PCRE2_PARTIAL_HARD);
    return pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text_.data()), end, at, options,
                       match_.get(), context_.get());
  }

  const pcre2_code* const code_;
  const std::string_view text_;
  Budget* const budget_;
  const std::unique_ptr<pcre2_match_data, FreeMatch> match_;
  const std::unique_ptr<pcre2_match_context, FreeContext> context_;  // shared by no threads
};

}  // namespace

struct Splitter::Expression {
  std::shared_ptr<const pcre2_code> code;
  KeptPieces kept = KeptPieces::kAll;

  absl::Status Cut(std::string_view text, Budget* budget,
                   std::vector<std::string_view>* pieces) const {
    Matcher matcher(code.get(), text, budget);
    size_t done = 0;
    for (size_t at = 0; at < text.size();) {
      const absl::StatusOr<size_t> length = matcher.At(at);
      if (!length.ok()) return length.status();
      if (*length == 0) {
        at += CharacterLength(static_cast<uint8_t>(text[at]));
        continue;
      }
      AddBetween(text.substr(done, at - done), pieces);
      if (kept != KeptPieces::kBetween) pieces->push_back(text.substr(at, *length));
      done = at += *length;
    }
    AddBetween(text.substr(done), pieces);
    return absl::OkStatus();
  }

  void AddBetween(std::string_view piece, std::vector<std::string_view>* pieces) const {
    if (!piece.empty() && kept != KeptPieces::kMatches) pieces->push_back(piece);
  }
};

absl::StatusOr<Splitter> Splitter::MakeUntrusted(const std::vector<SplitStage>& stages) {
  if (stages.size() > kStagesMax)
    return absl::UnimplementedError("splits text in more than 16 stages, which is not supported");
  Splitter splitter;
  for (const SplitStage& stage : stages) {
    const absl::StatusOr<std::string> spelled = Pcre2OfOnigurumaUntrusted(stage.expression);
    if (!spelled.ok()) return spelled.status();
    int error = 0;
    PCRE2_SIZE at = 0;
    const std::shared_ptr<Expression> made = std::make_shared<Expression>();
    made->kept = stage.kept;
    // `^` and `$` are borders of lines to Oniguruma.
    made->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(spelled->data()), spelled->size(),
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE, &error, &at, nullptr),
                     pcre2_code_free);
    if (made->code == nullptr)
      return absl::UnimplementedError("splits text by an expression that is not supported");
    splitter.stages_.push_back(made);
  }
  return splitter;
}

absl::StatusOr<std::vector<std::string_view>> Splitter::Split(std::string_view text) const {
  if (!IsUtf8(text)) return absl::InvalidArgumentError("the text is not valid UTF-8");
  std::vector<std::string_view> pieces;
  if (!text.empty()) pieces.push_back(text);
  for (const std::shared_ptr<const Expression>& stage : stages_) {
    Budget budget(text.size());
    std::vector<std::string_view> finer;
    for (const std::string_view piece : pieces) {
      if (const absl::Status cut = stage->Cut(piece, &budget, &finer); !cut.ok()) return cut;
    }
    pieces = std::move(finer);
  }
  return pieces;
}

}  // namespace serve::llm
