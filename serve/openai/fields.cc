#include "serve/openai/fields.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "serve/openai/values.h"

namespace serve::openai {
namespace {

constexpr unsigned kBoth = kCompletions | kChat;
constexpr unsigned kAll = kBoth | kTokenize | kDetokenize;
constexpr double kManyTokens = 1 << 30;

// Targets without a member of Fields.
struct Refused {};   // the row's text says why
struct Options {};   // stream_options
struct OnlyText {};  // response_format
using Target =
    std::variant<Refused, bool Fields::*, int64_t Fields::*, std::optional<int64_t> Fields::*,
                 double Fields::*, std::string Fields::*, std::vector<std::string> Fields::*,
                 std::vector<int32_t> Fields::*, std::vector<Prompt> Fields::*,
                 std::vector<ChatMessage> Fields::*,
                 std::vector<std::pair<int32_t, float>> Fields::*, Options, OnlyText>;
constexpr const char* kKinds[] = {"",
                                  "boolean",
                                  "integer",
                                  "integer",
                                  "number",
                                  "text",
                                  "text or list of texts",
                                  "tokens",
                                  "text, tokens, or a list of these",
                                  "messages",
                                  "object of token: number",
                                  "object",
                                  "object"};

// A field of some routes. The range is for numbers; equal bounds mean none. The text is the table's
// last column, and for a refused field the reason that the client reads.
struct Row {
  const char* name;
  unsigned routes;
  Target target;
  double least = 0;
  double most = 0;
  const char* text = "";
};

// A name may have two rows when routes give it two meanings.
constexpr Row kRows[] = {
    {"model", kAll, &Fields::model, 0, 0, "the only model when absent"},
    {"prompt", kCompletions | kTokenize, &Fields::prompts, 0, 0, "1 to 64 prompts"},
    {"messages", kChat | kTokenize, &Fields::messages, 0, 0, "content is text, or parts of text"},
    {"tokens", kDetokenize, &Fields::tokens},
    {"max_tokens", kBoth, &Fields::max_tokens, 0, kManyTokens,
     "16 for completions, the rest of the context for chats"},
    {"max_completion_tokens", kChat, &Fields::max_tokens, 0, kManyTokens, "as max_tokens"},
    {"min_tokens", kBoth, &Fields::min_tokens, 0, kManyTokens,
     "before them nothing ends an answer"},
    {"ignore_eos", kBoth, &Fields::ignore_eos, 0, 0, "the model's own end is no end"},
    {"stop", kBoth, &Fields::stop, 0, 0, "ends the answer; up to 16"},
    {"stop_token_ids", kBoth, &Fields::stop_token_ids},
    {"include_stop_str_in_output", kBoth, &Fields::include_stop_str_in_output},
    {"temperature", kBoth, &Fields::temperature, 0, 2, "0: the likeliest token"},
    {"top_p", kBoth, &Fields::top_p, 1e-6, 1},
    {"top_k", kBoth, &Fields::top_k, -1, kManyTokens, "0 and -1: all"},
    {"min_p", kBoth, &Fields::min_p, 0, 1},
    {"seed", kBoth, &Fields::seed, -9.2e18, 9.2e18, "the same seed gives the same answer"},
    {"n", kBoth, &Fields::n, 1, 128, "answers to each prompt"},
    {"presence_penalty", kBoth, &Fields::presence_penalty, -2, 2},
    {"frequency_penalty", kBoth, &Fields::frequency_penalty, -2, 2},
    {"repetition_penalty", kBoth, &Fields::repetition_penalty, 0.01, 100},
    {"logit_bias", kBoth, &Fields::logit_bias, 0, 0, "from -100 to 100 each"},
    {"logprobs", kCompletions, &Fields::logprobs, 0, 20, "of each token, and of so many likeliest"},
    {"logprobs", kChat, &Fields::chat_logprobs},
    {"top_logprobs", kChat, &Fields::top_logprobs, 0, 20, "needs logprobs"},
    {"echo", kCompletions, &Fields::echo, 0, 0, "the answer begins with the prompt"},
    {"stream", kBoth, &Fields::stream},
    {"stream_options", kBoth, Options(), 0, 0, "include_usage, continuous_usage_stats"},
    {"user", kBoth, &Fields::user, 0, 0, "not used"},
    {"priority", kBoth, &Fields::priority, 0, 15, "class; 0 is the most urgent"},
    {"cache_salt", kBoth, &Fields::cache_salt, 0, 0, "shares computed prompts with its like alone"},
    {"add_special_tokens", kCompletions | kTokenize, &Fields::add_special_tokens},
    {"skip_special_tokens", kBoth, &Fields::skip_special_tokens},
    {"add_generation_prompt", kChat | kTokenize, &Fields::add_generation_prompt},
    {"return_token_strs", kTokenize, &Fields::return_token_strs},
    {"deadline_ms", kBoth, &Fields::deadline_ms, 1, 86'400'000, "later an answer is worth nothing"},
    {"response_format", kBoth, OnlyText(), 0, 0, "only {\"type\": \"text\"}"},
    {"tools", kBoth, Refused(), 0, 0, "tools are not served"},
    {"tool_choice", kBoth, Refused(), 0, 0, "tools are not served"},
    {"functions", kBoth, Refused(), 0, 0, "tools are not served"},
    {"function_call", kBoth, Refused(), 0, 0, "tools are not served"},
    {"images", kBoth, Refused(), 0, 0, "only text is served"},
    {"audio", kBoth, Refused(), 0, 0, "only text is served"},
    {"best_of", kBoth, Refused(), 0, 0, "ask for n answers and choose among them"},
    {"suffix", kBoth, Refused(), 0, 0, "text before a suffix is not served"},
    {"adapter", kBoth, Refused(), 0, 0, "adapters are not served"},
    {"adapters", kBoth, Refused(), 0, 0, "adapters are not served"},
    {"lora_request", kBoth, Refused(), 0, 0, "adapters are not served"},
};

// What no client's need is: the values with which others' defaults turn a refused field off.
bool IsNothing(std::string_view name, const Json& value) {
  return value.is_null() || (value.is_array() && value.empty()) ||
         (name == "tool_choice" && value == "none") || (name == "best_of" && value == 1) ||
         (name == "suffix" && value == "");
}

std::string ReadOptions(const Json& value, Fields* fields) {
  if (!value.is_object()) return "must be an object";
  for (const auto& [name, item] : value.items()) {
    std::string wrong;
    if (item.is_null()) continue;
    if (name == "include_usage") wrong = Read(item, &fields->include_usage);
    if (name == "continuous_usage_stats") wrong = Read(item, &fields->continuous_usage_stats);
    if (!wrong.empty()) return absl::StrCat("has a member ", name, " that ", wrong);
  }
  return "";
}

// Reads a value into the row's target, as the target's type asks.
struct Reader {
  const Row& row;
  const Json& value;
  Fields* fields;

  int64_t least() const { return static_cast<int64_t>(row.least); }
  int64_t most() const { return static_cast<int64_t>(row.most); }

  std::string operator()(Refused) const { return absl::StrCat("is refused: ", row.text); }
  std::string operator()(Options) const { return ReadOptions(value, fields); }
  std::string operator()(OnlyText) const {
    const bool is_text = value.is_object() && value.contains("type") && value["type"] == "text";
    return is_text ? "" : "must be {\"type\": \"text\"}; only text is served";
  }
  std::string operator()(bool Fields::*member) const { return Read(value, &(fields->*member)); }
  std::string operator()(int64_t Fields::*member) const {
    return Read(value, least(), most(), &(fields->*member));
  }
  std::string operator()(std::optional<int64_t> Fields::*member) const {
    return Read(value, least(), most(), &(fields->*member).emplace());
  }
  std::string operator()(double Fields::*member) const {
    return Read(value, row.least, row.most, &(fields->*member));
  }
  std::string operator()(std::string Fields::*member) const {
    return Read(value, &(fields->*member));
  }
  std::string operator()(std::vector<std::string> Fields::*member) const {
    return ReadTexts(value, &(fields->*member));
  }
  std::string operator()(std::vector<int32_t> Fields::*member) const {
    return ReadTokens(value, &(fields->*member));
  }
  std::string operator()(std::vector<Prompt> Fields::*member) const {
    return ReadPrompts(value, &(fields->*member));
  }
  std::string operator()(std::vector<ChatMessage> Fields::*member) const {
    return ReadMessages(value, &(fields->*member));
  }
  std::string operator()(std::vector<std::pair<int32_t, float>> Fields::*member) const {
    return ReadBias(value, &(fields->*member));
  }
};

// Null: the route has no such field.
const Row* FindRow(std::string_view name, unsigned route) {
  const Row* const found = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& row) {
    return row.name == name && (row.routes & route) != 0;
  });
  return found == std::end(kRows) ? nullptr : found;
}

// The name of an unknown field goes to the log, where a stranger must not write what he likes.
std::string Shortened(const std::string& name) {
  std::string result = name.substr(0, 64);
  for (char& c : result)
    if (c < ' ' || c > '~') c = '?';
  return result;
}

// What one field says of another.
std::optional<Error> CheckTogether(const Fields& fields, Route route) {
  const bool has_prompt = !fields.prompts.empty(), has_messages = !fields.messages.empty();
  if (route == kCompletions && !has_prompt) return BadField("prompt", "prompt is required");
  if (route == kChat && !has_messages) return BadField("messages", "messages is required");
  if (route == kTokenize && has_prompt == has_messages)
    return BadField("prompt", "give either prompt or messages");
  if (route == kTokenize && fields.prompts.size() > 1)
    return BadField("prompt", "prompt must be one text");
  if (fields.top_logprobs > 0 && !fields.chat_logprobs)
    return BadField("top_logprobs", "top_logprobs needs logprobs to be true");
  if ((fields.include_usage || fields.continuous_usage_stats) && !fields.stream)
    return BadField("stream_options", "stream_options needs stream to be true");
  if (fields.echo && fields.logprobs.has_value())
    return BadField("echo", "echo with logprobs is refused: probabilities of prompts are not kept");
  return std::nullopt;
}

// The default is the member's initial value in Fields, which is written there alone.
std::string DefaultOf(const Target& target) {
  const Fields fields;
  if (const auto* truth = std::get_if<bool Fields::*>(&target))
    return fields.**truth ? "true" : "false";
  if (const auto* number = std::get_if<int64_t Fields::*>(&target))
    return absl::StrCat(fields.**number);
  if (const auto* number = std::get_if<double Fields::*>(&target))
    return absl::StrCat(fields.**number);
  return "";
}

// Bounds as a reader wants them: the largest ones stand for no bound at all.
std::string RangeOf(const Row& row) {
  if (row.least == row.most) return "";
  if (row.most == kManyTokens) return absl::StrCat("from ", row.least);
  if (row.most > 1e18) return "64 bits";
  return absl::StrCat(static_cast<int64_t>(row.least) == row.least
                          ? absl::StrCat(static_cast<int64_t>(row.least))
                          : absl::StrCat(row.least),
                      " to ", static_cast<int64_t>(row.most));
}

}  // namespace

std::variant<Parsed, Error> ParseBodyUntrusted(std::string_view body, Route route) {
  Json object;
  if (std::string wrong = ReadBodyUntrusted(body, &object); !wrong.empty())
    return Error{400, std::move(wrong), "", "invalid_json"};
  Parsed parsed;
  for (const auto& [name, value] : object.items()) {
    const Row* const row = FindRow(name, route);
    if (row == nullptr) parsed.unknown.push_back(Shortened(name));
    if (row == nullptr || value.is_null()) continue;
    if (std::holds_alternative<Refused>(row->target) && IsNothing(name, value)) continue;
    const std::string wrong = std::visit(Reader{*row, value, &parsed.fields}, row->target);
    if (!wrong.empty()) {
      Error error = BadField(name, absl::StrCat(name, " ", wrong));
      if (std::holds_alternative<Refused>(row->target)) error.code = "unsupported_parameter";
      return error;
    }
  }
  if (std::optional<Error> error = CheckTogether(parsed.fields, route)) return *std::move(error);
  return parsed;
}

std::string FieldsTable() {
  std::string text = "| field | of | type | range | default | |\n|---|---|---|---|---|---|\n";
  constexpr std::pair<unsigned, const char*> kNames[] = {{kCompletions, "completions"},
                                                         {kChat, "chat"},
                                                         {kTokenize, "tokenize"},
                                                         {kDetokenize, "detokenize"}};
  for (const Row& row : kRows) {
    std::string routes;
    for (const auto& [route, name] : kNames)
      if ((row.routes & route) != 0) absl::StrAppend(&routes, routes.empty() ? "" : ", ", name);
    const bool refused = std::holds_alternative<Refused>(row.target);
    absl::StrAppend(&text, "| `", row.name, "` | ", row.routes == kAll ? "all" : routes, " | ",
                    refused ? "refused" : kKinds[row.target.index()], " | ", RangeOf(row), " | ",
                    DefaultOf(row.target), " | ", row.text, " |\n");
  }
  return text;
}

}  // namespace serve::openai
