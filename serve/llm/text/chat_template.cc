#include "serve/llm/text/chat_template.h"

#include <limits>
#include <utility>

#include "serve/llm/text/jinja/renderer.h"
#include "serve/llm/text/jinja/sentence.h"
#include "serve/llm/text/jinja/template_parser.h"
#include "serve/llm/text/utf8.h"

namespace serve::llm {
namespace {

using jinja::None;
using jinja::Rendering;
using jinja::Scope;
using jinja::SequenceForm;
using jinja::Value;

// Values of a conversation, which a client sent. `depth` is how many containers are around.
class JsonReader {
 public:
  explicit JsonReader(Rendering* rendering) : rendering_(*rendering) {}

  Value ReadUntrusted(const OrderedJson& json, int depth);

 private:
  Value Number(const OrderedJson& json);
  Value Text(const std::string& text);

  Rendering& rendering_;
};

Value JsonReader::Number(const OrderedJson& json) {
  if (json.is_number_float()) return Value(json.get<double>());
  if (json.is_number_unsigned() &&
      json.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()})
    return rendering_.Fail("a whole number is beyond 64 bits, which is not supported");
  return Value(json.get<int64_t>());
}

Value JsonReader::Text(const std::string& text) {
  if (!IsUtf8(text)) return rendering_.Fail("a text is no UTF-8");
  return rendering_.MakeText(text);
}

Value JsonReader::ReadUntrusted(const OrderedJson& json, int depth) {
  if (depth > jinja::kValueDepthMax / 2)
    return rendering_.Fail("values of the messages nest too deep");
  if (!rendering_.Spend(1) || json.is_null()) return Value(None());
  if (json.is_boolean()) return Value(json.get<bool>());
  if (json.is_number()) return Number(json);
  if (json.is_string()) return Text(json.get_ref<const std::string&>());
  if (json.is_array()) {
    jinja::Values items;
    for (const OrderedJson& item : json) {
      if (rendering_.failed()) break;
      items.push_back(ReadUntrusted(item, depth + 1));
    }
    return rendering_.MakeList(std::move(items));
  }
  if (!json.is_object()) return rendering_.Fail("a value is none of JSON");
  std::vector<std::pair<Value, Value>> entries;
  for (const auto& [key, value] : json.items()) {
    if (rendering_.failed()) break;
    entries.emplace_back(Text(key), ReadUntrusted(value, depth + 1));
  }
  return rendering_.MakeDictionary(std::move(entries));
}

// The variables of a conversation, by names that belong to it.
void SetVariables(const Conversation& conversation, Rendering* rendering, Scope* scope) {
  JsonReader reader(rendering);
  scope->Set("tools", Value(None()));
  scope->Set("documents", Value(None()));
  if (conversation.bos_token.has_value()) scope->Set("bos_token", Value(*conversation.bos_token));
  if (conversation.eos_token.has_value()) scope->Set("eos_token", Value(*conversation.eos_token));
  for (const auto& item : conversation.variables.items()) {
    if (!rendering->SpendNames(scope->names.size())) return;
    scope->Set(item.key(), reader.ReadUntrusted(item.value(), 1));
  }
  scope->Set("messages", reader.ReadUntrusted(conversation.messages, 1));
  scope->Set("add_generation_prompt", Value(conversation.add_generation_prompt));
}

}  // namespace

struct ChatTemplate::Parsed {
  jinja::Statements statements;
};

absl::StatusOr<ChatTemplate> ChatTemplate::ParseUntrusted(std::string_view text) {
  absl::StatusOr<jinja::Statements> statements = jinja::ParseTemplateUntrusted(text);
  if (!statements.ok()) return statements.status();
  return ChatTemplate(std::make_shared<const Parsed>(Parsed{*std::move(statements)}));
}

absl::StatusOr<std::string> ChatTemplate::Render(const Conversation& conversation) const {
  Rendering rendering(conversation.now);
  Scope* const scope = rendering.NewScope(nullptr);
  SetVariables(conversation, &rendering, scope);
  std::string output;
  if (!rendering.failed()) jinja::Renderer(&rendering).Run(parsed_->statements, scope, &output);
  if (rendering.failed()) return rendering.failure();
  return output;
}

}  // namespace serve::llm
