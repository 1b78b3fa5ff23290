// The text of one answer as the API asks for it: tokens of a model, stop texts, and the number of
// tokens before which no text ends the answer. Thread safety: none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "serve/llm/text/answer_text.h"
#include "serve/llm/text/detokenizer.h"
#include "serve/llm/text/tokenizer.h"
#include "serve/openai/served_model.h"

namespace serve::front {

class TokenText final : public openai::AnswerText {
 public:
  // `tokenizer` outlives the text.
  TokenText(const llm::Tokenizer* tokenizer, const openai::AnswerTextOptions& options)
      : tokenizer_(*tokenizer), options_(options), text_({options.stops, options.include_stop}) {}

  Piece Add(int32_t token, bool stops) override;
  std::string Flush() override;

 private:
  // Of text that stop texts are looked for in.
  Piece Find(std::string_view text);

  const llm::Tokenizer& tokenizer_;
  const openai::AnswerTextOptions options_;
  llm::Detokenizer characters_;
  llm::AnswerText text_;
  int32_t tokens_ = 0;
};

}  // namespace serve::front
