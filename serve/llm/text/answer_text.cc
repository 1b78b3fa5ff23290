#include "serve/llm/text/answer_text.h"

#include <algorithm>
#include <utility>

namespace serve::llm {

AnswerText::AnswerText(StopTexts stops) : included_(stops.included) {
  for (std::string& text : stops.texts) {
    if (text.empty()) continue;
    Matcher matcher{.text = std::move(text), .shorter = {0}};
    for (size_t at = 1; at < matcher.text.size(); ++at) {
      matcher.Step(matcher.text[at]);
      matcher.shorter.push_back(matcher.matched);
    }
    matcher.matched = 0;
    stops_.push_back(std::move(matcher));
  }
}

void AnswerText::Matcher::Step(char letter) {
  while (matched > 0 && (matched == text.size() || text[matched] != letter))
    matched = shorter[matched - 1];
  if (text[matched] == letter) ++matched;
}

bool AnswerText::Step(char letter, size_t* begin) {
  held_.push_back(letter);
  size_t longest = 0;
  for (Matcher& stop : stops_) {
    stop.Step(letter);
    if (stop.matched == stop.text.size()) longest = std::max(longest, stop.text.size());
  }
  *begin = held_.size() - longest;
  return longest > 0;
}

AnswerPiece AnswerText::Take(std::string_view text) {
  AnswerPiece piece;
  size_t begin = 0;
  for (const char letter : text) {
    if (!Step(letter, &begin)) continue;
    stopped_ = true;
    piece.stopped = true;
    piece.text = held_.substr(0, included_ ? held_.size() : begin);
    held_.clear();
    return piece;
  }
  size_t kept = 0;
  for (const Matcher& stop : stops_) kept = std::max(kept, stop.matched);
  piece.text = held_.substr(0, held_.size() - kept);
  held_.erase(0, piece.text.size());
  return piece;
}

// Text comes in whole characters, and stop texts begin with whole ones: so do pieces.
AnswerPiece AnswerText::Add(std::string_view bytes) { return Take(detokenizer_.Add(bytes)); }

AnswerPiece AnswerText::Flush() {
  if (stopped_) return {};
  AnswerPiece piece = Take(detokenizer_.Flush());
  if (!piece.stopped) piece.text += std::exchange(held_, "");
  return piece;
}

std::string TokenText(std::string_view bytes) {
  Detokenizer detokenizer;
  std::string text = detokenizer.Add(bytes);
  return text + detokenizer.Flush();
}

}  // namespace serve::llm
