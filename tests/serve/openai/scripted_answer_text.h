// The text of an answer of the scripted model: tokens are bytes.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "serve/llm/text/detokenizer.h"
#include "serve/openai/served_model.h"

namespace serve::openai {

class ScriptedAnswerText : public AnswerText {
 public:
  explicit ScriptedAnswerText(AnswerTextOptions options) : options_(std::move(options)) {}

  Piece Add(int32_t token, bool stops) override {
    ++tokens_;
    if (!stops && token < 256) held_ += detokenizer_.Add(std::string(1, static_cast<char>(token)));
    size_t longest = 1;
    for (const std::string& stop : options_.stops) {
      longest = std::max(longest, stop.size());
      const size_t found = held_.find(stop);
      if (found == std::string::npos || tokens_ < options_.min_tokens) continue;
      const size_t end = found + (options_.include_stop ? stop.size() : 0);
      const std::string text = held_.substr(0, end);
      held_.clear();
      return {text, true};
    }
    const size_t sure = held_.size() - std::min(held_.size(), longest - 1);
    const std::string text = held_.substr(0, sure);
    held_.erase(0, sure);
    return {text, false};
  }
  std::string Flush() override { return std::exchange(held_, "") + detokenizer_.Flush(); }

 private:
  const AnswerTextOptions options_;
  serve::llm::Detokenizer detokenizer_;
  std::string held_;
  int32_t tokens_ = 0;
};

}  // namespace serve::openai
