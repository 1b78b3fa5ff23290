// The fields of request bodies: one table of names, types, ranges, defaults and routes, which
// parses bodies and writes their documentation.
//
// Bodies come from anywhere. Null is as absent. What parses has values of the right types and in
// range; what depends on the model is checked later (prepare.h).
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "serve/openai/error.h"
#include "serve/openai/served_model.h"

namespace serve::openai {

enum Route : unsigned { kCompletions = 1, kChat = 2, kTokenize = 4, kDetokenize = 8 };

using Prompt = std::variant<std::string, std::vector<int32_t>>;

struct Fields {
  std::string model;
  std::vector<Prompt> prompts;
  std::vector<ChatMessage> messages;
  std::vector<int32_t> tokens;
  std::optional<int64_t> max_tokens;
  int64_t min_tokens = 0;
  bool ignore_eos = false;
  std::vector<std::string> stop;
  std::vector<int32_t> stop_token_ids;
  bool include_stop_str_in_output = false;
  double temperature = 1;
  double top_p = 1;
  int64_t top_k = 0;
  double min_p = 0;
  std::optional<int64_t> seed;
  int64_t n = 1;
  double presence_penalty = 0;
  double frequency_penalty = 0;
  double repetition_penalty = 1;
  std::vector<std::pair<int32_t, float>> logit_bias;
  std::optional<int64_t> logprobs;  // completions
  bool chat_logprobs = false;
  int64_t top_logprobs = 0;
  bool echo = false;
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage_stats = false;
  std::string user;
  int64_t priority = 1;
  std::string cache_salt;
  bool add_special_tokens = true;
  bool skip_special_tokens = true;
  bool add_generation_prompt = true;
  bool return_token_strs = false;
  std::optional<int64_t> deadline_ms;
};

struct Parsed {
  Fields fields;
  std::vector<std::string> unknown;  // names, shortened to be logged
};

constexpr size_t kDepthMax = 32;
constexpr size_t kPromptsMax = 64;
constexpr size_t kStopsMax = 16;

std::variant<Parsed, Error> ParseBodyUntrusted(std::string_view body, Route route);

// The table as Markdown, a row for each field.
std::string FieldsTable();

}  // namespace serve::openai
