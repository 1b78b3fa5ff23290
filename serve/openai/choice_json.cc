#include "serve/openai/choice_json.h"

#include <cmath>
#include <utility>

namespace serve::openai {
namespace {

// JSON has no infinity, which a banned token's logarithm is.
double Finite(float logprob) { return std::isfinite(logprob) ? logprob : -9999.0; }

// Part of a character is shown as U+FFFD.
std::string TextOf(int32_t token, const ServedModel& model) { return model.Decode({token}); }

OrderedJson BytesOf(int32_t token, const ServedModel& model) {
  OrderedJson bytes = OrderedJson::array();
  for (const char c : model.BytesOf(token)) bytes.push_back(static_cast<uint8_t>(c));
  return bytes;
}

OrderedJson ChatToken(int32_t token, float logprob, const ServedModel& model) {
  return {{"token", TextOf(token, model)},
          {"logprob", Finite(logprob)},
          {"bytes", BytesOf(token, model)}};
}

OrderedJson ChatLogprobs(const std::vector<TokenEntry>& tokens, const ServedModel& model) {
  OrderedJson content = OrderedJson::array();
  for (const TokenEntry& entry : tokens) {
    OrderedJson row = ChatToken(entry.token.token, entry.token.logprob, model);
    row["top_logprobs"] = OrderedJson::array();
    for (const llm::TokenLogprob& top : entry.token.top)
      row["top_logprobs"].push_back(ChatToken(top.token, top.logprob, model));
    content.push_back(std::move(row));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

OrderedJson CompletionLogprobs(const std::vector<TokenEntry>& tokens, const ServedModel& model) {
  OrderedJson result = {{"tokens", OrderedJson::array()},
                        {"token_logprobs", OrderedJson::array()},
                        {"top_logprobs", OrderedJson::array()},
                        {"text_offset", OrderedJson::array()}};
  for (const TokenEntry& entry : tokens) {
    result["tokens"].push_back(TextOf(entry.token.token, model));
    result["token_logprobs"].push_back(Finite(entry.token.logprob));
    OrderedJson top = OrderedJson::object();
    for (const llm::TokenLogprob& one : entry.token.top)
      top[TextOf(one.token, model)] = Finite(one.logprob);
    top[TextOf(entry.token.token, model)] = Finite(entry.token.logprob);
    result["top_logprobs"].push_back(std::move(top));
    result["text_offset"].push_back(entry.text_offset);
  }
  return result;
}

OrderedJson ChoiceOf(const ChoiceText& choice, Route route, bool wants_logprobs,
                     const ServedModel& model, OrderedJson text) {
  OrderedJson json = {{"index", choice.index}};
  json.update(text);
  json["logprobs"] = nullptr;
  if (wants_logprobs)
    json["logprobs"] = route == kChat ? ChatLogprobs(choice.tokens, model)
                                      : CompletionLogprobs(choice.tokens, model);
  json["finish_reason"] =
      choice.finish_reason == nullptr ? OrderedJson() : OrderedJson(choice.finish_reason);
  return json;
}

}  // namespace

OrderedJson WholeChoice(const ChoiceText& choice, Route route, bool wants_logprobs,
                        const ServedModel& model) {
  if (route != kChat)
    return ChoiceOf(choice, route, wants_logprobs, model, {{"text", choice.text}});
  return ChoiceOf(choice, route, wants_logprobs, model,
                  {{"message", {{"role", "assistant"}, {"content", choice.text}}}});
}

OrderedJson ChunkChoice(const ChoiceText& choice, Route route, bool wants_logprobs,
                        const ServedModel& model) {
  if (route != kChat)
    return ChoiceOf(choice, route, wants_logprobs, model, {{"text", choice.text}});
  return ChoiceOf(choice, route, wants_logprobs, model, {{"delta", {{"content", choice.text}}}});
}

OrderedJson UsageJson(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}};
}

size_t CharactersOf(std::string_view text) {
  size_t characters = 0;
  for (const char c : text) characters += (static_cast<uint8_t>(c) & 0xc0) != 0x80;
  return characters;
}

std::string Dump(const OrderedJson& json) {
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace serve::openai
