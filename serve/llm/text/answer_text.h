// The text of one answer while its tokens come: pieces of valid UTF-8, up to the first stop text.
//
// A piece is told as soon as no stop text can begin within it any more: the longest end of the text
// that begins a stop text is held back, and so are bytes that begin a character. A stop text may
// end within a token's bytes: the rest of these is no text of the answer.
//
// Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "serve/llm/text/detokenizer.h"

namespace serve::llm {

struct StopTexts {
  std::vector<std::string> texts;  // empty ones never stop an answer
  bool included = false;           // the stop text is part of the answer
};

struct AnswerPiece {
  std::string text;      // what the token adds to the answer now; may be empty
  bool stopped = false;  // a stop text is complete: the answer has ended
};

class AnswerText {
 public:
  explicit AnswerText(StopTexts stops);

  // A token's bytes (Tokenizer::BytesOf); a token that is no text, such as a control token with
  // skip_special_tokens, has none. Linear in the bytes for each stop text. REQUIRES: not stopped.
  AnswerPiece Add(std::string_view bytes);
  // At the end: what was held back. Nothing after a stop text.
  AnswerPiece Flush();

  bool stopped() const { return stopped_; }

 private:
  // A stop text as it is found letter by letter (Knuth, Morris, Pratt 1977).
  struct Matcher {
    std::string text;
    std::vector<size_t> shorter;  // of each beginning, its longest end that is a beginning too
    size_t matched = 0;           // bytes of `text` that the answer ends with

    void Step(char letter);
  };

  AnswerPiece Take(std::string_view text);
  // Whether a stop text ends with this letter; `begin` is where the longest of those begins in
  // held_.
  bool Step(char letter, size_t* begin);

  std::vector<Matcher> stops_;
  bool included_;
  Detokenizer detokenizer_;
  std::string held_;  // text that is not told yet
  bool stopped_ = false;
};

// A token alone, for its entry in logprobs: text with U+FFFD where its bytes are no characters.
std::string TokenText(std::string_view bytes);

}  // namespace serve::llm
