#include "serve/front/token_text.h"

namespace serve::front {

openai::AnswerText::Piece TokenText::Add(int32_t token, bool stops) {
  ++tokens_;
  const bool silent = stops || (options_.skip_special_tokens && tokenizer_.IsControl(token));
  const std::string text = silent ? "" : characters_.Add(tokenizer_.BytesOf(token));
  if (tokens_ < options_.min_tokens) return {text, false};
  return Find(text);
}

openai::AnswerText::Piece TokenText::Find(std::string_view text) {
  if (text_.stopped()) return {"", true};
  llm::AnswerPiece piece = text_.Add(text);
  return {std::move(piece.text), piece.stopped};
}

// A stop text may be complete only now, when a character that never became whole is U+FFFD.
std::string TokenText::Flush() {
  if (text_.stopped()) return "";
  const std::string rest = characters_.Flush();
  std::string text = Find(rest).text;
  if (!text_.stopped()) text += text_.Flush().text;
  return text;
}

}  // namespace serve::front
