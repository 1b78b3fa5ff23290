// Answers of a model as JSON in the shapes of the two routes, whole and as chunks of a stream.
// Pure. Thread safety: functions without state.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "serve/openai/fields.h"
#include "serve/openai/served_model.h"

namespace serve::openai {

using OrderedJson = nlohmann::ordered_json;

// A token that was answered, where probabilities are wanted.
struct TokenEntry {
  llm::GeneratedToken token;
  size_t text_offset = 0;  // characters of the answer before it
};

struct ChoiceText {
  int64_t index = 0;
  std::string text;
  std::vector<TokenEntry> tokens;
  const char* finish_reason = nullptr;  // null: not ended
};

struct Usage {
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  int64_t cached_tokens = 0;  // of the prompts
};

// `wants_logprobs`: the choice has its tokens' probabilities, else null.
OrderedJson WholeChoice(const ChoiceText& choice, Route route, bool wants_logprobs,
                        const ServedModel& model);
OrderedJson ChunkChoice(const ChoiceText& choice, Route route, bool wants_logprobs,
                        const ServedModel& model);
OrderedJson UsageJson(const Usage& usage);
size_t CharactersOf(std::string_view text);

std::string Dump(const OrderedJson& json);

}  // namespace serve::openai
