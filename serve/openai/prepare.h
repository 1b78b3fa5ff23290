// A parsed body as requests to a model's generator: tokens, bounds of the model, defaults.
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "serve/openai/fields.h"
#include "serve/openai/served_model.h"

namespace serve::openai {

constexpr int64_t kAnswersMax = 256;  // of one body: prompts times n

struct Prepared {
  std::vector<llm::GenerationRequest> requests;  // one a prompt
  std::vector<std::string> echoes;               // what each answer begins with; empty without echo
  AnswerTextOptions text;
};

// `random_seed` is for a body without a seed. REQUIRES: route is kCompletions or kChat.
std::variant<Prepared, Error> Prepare(const Fields& fields, Route route, const ServedModel& model,
                                      uint64_t random_seed);

// The tokens of /tokenize's text or messages, or of one prompt.
std::variant<std::vector<int32_t>, Error> TokensOf(const Prompt& prompt, bool first,
                                                   const ServedModel& model);
std::variant<std::vector<int32_t>, Error> TokensOf(const std::vector<ChatMessage>& messages,
                                                   bool add_generation_prompt,
                                                   const ServedModel& model);

}  // namespace serve::openai
