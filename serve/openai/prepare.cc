#include "serve/openai/prepare.h"

#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"

namespace serve::openai {
namespace {

constexpr int64_t kCompletionTokens = 16;  // OpenAI's default

using Tokens = std::variant<std::vector<int32_t>, Error>;

bool AreKnown(const std::vector<int32_t>& tokens, const ServedModel& model) {
  return std::all_of(tokens.begin(), tokens.end(),
                     [&model](int32_t token) { return token < model.vocabulary(); });
}

Error OutOfVocabulary(std::string_view param, const ServedModel& model) {
  return BadField(param, absl::StrCat(std::string(param), " names a token beyond the model's ",
                                      model.vocabulary()));
}

llm::SamplingParameters SamplingOf(const Fields& fields, uint64_t random_seed) {
  llm::SamplingParameters sampling;
  sampling.temperature = static_cast<float>(fields.temperature);
  sampling.top_p = static_cast<float>(fields.top_p);
  sampling.top_k = static_cast<int32_t>(std::max<int64_t>(fields.top_k, 0));
  sampling.min_p = static_cast<float>(fields.min_p);
  sampling.repetition_penalty = static_cast<float>(fields.repetition_penalty);
  sampling.frequency_penalty = static_cast<float>(fields.frequency_penalty);
  sampling.presence_penalty = static_cast<float>(fields.presence_penalty);
  sampling.seed = fields.seed.has_value() ? static_cast<uint64_t>(*fields.seed) : random_seed;
  sampling.logit_bias = fields.logit_bias;
  sampling.min_tokens = static_cast<int32_t>(fields.min_tokens);
  sampling.ignore_eos = fields.ignore_eos;
  sampling.stop_tokens = fields.stop_token_ids;
  if (fields.logprobs.has_value()) sampling.logprobs = static_cast<int32_t>(*fields.logprobs);
  if (fields.chat_logprobs) sampling.logprobs = static_cast<int32_t>(fields.top_logprobs);
  return sampling;
}

// 0 means no salt, so no salt's number is 0. Numbers differ from process to process: a client
// cannot choose a salt whose number is another's.
uint64_t SaltOf(const std::string& salt) {
  if (salt.empty()) return 0;
  return std::max<uint64_t>(absl::Hash<std::string>()(salt), 1);
}

std::optional<Error> CheckTokenFields(const Fields& fields, const ServedModel& model) {
  if (!AreKnown(fields.stop_token_ids, model)) return OutOfVocabulary("stop_token_ids", model);
  for (const auto& [token, bias] : fields.logit_bias)
    if (token >= model.vocabulary()) return OutOfVocabulary("logit_bias", model);
  return std::nullopt;
}

// An answer that may be longer than the context is clipped; a prompt that fills it is refused.
std::optional<Error> CheckLength(const std::vector<int32_t>& tokens, std::string_view param,
                                 const ServedModel& model) {
  if (tokens.empty()) return BadField(param, "the prompt is empty");
  if (static_cast<int64_t>(tokens.size()) < model.context()) return std::nullopt;
  return Error{400,
               absl::StrCat("the model's context is ", model.context(),
                            " tokens, and the prompt has ", tokens.size(), "; shorten it"),
               std::string(param), "context_length_exceeded"};
}

// The client's own text: the prompt's tokens may begin with a token that the text does not spell.
std::string EchoOf(const Prompt& prompt, const ServedModel& model) {
  if (const auto* text = std::get_if<std::string>(&prompt)) return *text;
  return model.DecodeText(std::get<std::vector<int32_t>>(prompt));
}

}  // namespace

Tokens TokensOf(const Prompt& prompt, bool first, const ServedModel& model) {
  if (const auto* tokens = std::get_if<std::vector<int32_t>>(&prompt)) {
    if (!AreKnown(*tokens, model)) return OutOfVocabulary("prompt", model);
    return *tokens;
  }
  absl::StatusOr<std::vector<int32_t>> tokens =
      model.Encode(std::get<std::string>(prompt), /*control=*/false, first);
  if (!tokens.ok()) return BadField("prompt", std::string(tokens.status().message()));
  return *std::move(tokens);
}

Tokens TokensOf(const std::vector<ChatMessage>& messages, bool add_generation_prompt,
                const ServedModel& model) {
  const absl::StatusOr<std::string> text = model.RenderChat(messages, add_generation_prompt);
  if (!text.ok()) return BadField("messages", std::string(text.status().message()));
  absl::StatusOr<std::vector<int32_t>> tokens = model.Encode(*text, /*control=*/true, false);
  if (!tokens.ok()) return BadField("messages", std::string(tokens.status().message()));
  return *std::move(tokens);
}

std::variant<Prepared, Error> Prepare(const Fields& fields, Route route, const ServedModel& model,
                                      uint64_t random_seed) {
  if (std::optional<Error> error = CheckTokenFields(fields, model)) return *std::move(error);
  std::vector<Tokens> prompts;
  if (route == kChat)
    prompts.push_back(TokensOf(fields.messages, fields.add_generation_prompt, model));
  for (const Prompt& prompt : fields.prompts)
    prompts.push_back(TokensOf(prompt, fields.add_special_tokens, model));
  if (static_cast<int64_t>(prompts.size()) * fields.n > kAnswersMax)
    return BadField("n", absl::StrCat("over ", kAnswersMax, " answers to one request"));
  Prepared prepared;
  prepared.text = {fields.stop, fields.include_stop_str_in_output, fields.skip_special_tokens,
                   static_cast<int32_t>(fields.min_tokens)};
  for (Tokens& prompt : prompts) {
    if (Error* error = std::get_if<Error>(&prompt)) return std::move(*error);
    std::vector<int32_t>& tokens = std::get<std::vector<int32_t>>(prompt);
    const char* const param = route == kChat ? "messages" : "prompt";
    if (std::optional<Error> error = CheckLength(tokens, param, model)) return *std::move(error);
    const int64_t rest = model.context() - static_cast<int64_t>(tokens.size());
    const int64_t wanted = fields.max_tokens.value_or(route == kChat ? rest : kCompletionTokens);
    const size_t number = prepared.echoes.size();
    prepared.echoes.push_back(fields.echo ? EchoOf(fields.prompts[number], model) : "");
    llm::GenerationRequest& request = prepared.requests.emplace_back();
    request.prompt = std::move(tokens);
    request.new_max = static_cast<int32_t>(std::min(wanted, rest));
    request.sampling = SamplingOf(fields, random_seed);
    request.priority = static_cast<uint32_t>(fields.priority);
    request.deadline_us = fields.deadline_ms.value_or(0) * 1000;
    request.salt = SaltOf(fields.cache_salt);
    request.answers = static_cast<int32_t>(fields.n);
  }
  return prepared;
}

}  // namespace serve::openai
