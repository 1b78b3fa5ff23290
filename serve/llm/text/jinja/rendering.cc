#include "serve/llm/text/jinja/rendering.h"
#include "serve/llm/text/jinja/sentence.h"

namespace serve::llm::jinja {

void Scope::Set(std::string_view name, Value value) {
  for (auto& [known, held] : names) {
    if (known == name) {
      held = std::move(value);
      return;
    }
  }
  names.emplace_back(name, std::move(value));
}

const Value* Scope::Find(std::string_view name, size_t* looked) const {
  for (const Scope* scope = this; scope != nullptr; scope = scope->parent) {
    *looked += scope->names.size() + 1;
    for (const auto& [known, held] : scope->names)
      if (known == name) return &held;
  }
  return nullptr;
}

bool Rendering::Spend(size_t steps) {
  if (failed()) return false;
  if (static_cast<int64_t>(steps) <= steps_) {
    steps_ -= static_cast<int64_t>(steps);
    return true;
  }
  failure_ = absl::ResourceExhaustedError(
      Sentence("the model's chat template takes too many steps for these messages (line ", line_,
               "); send fewer or shorter ones"));
  return false;
}

bool Rendering::Enter() {
  if (++depth_ > kEvaluationDepthMax)
    Fail(Sentence("it calls itself, or nests, over ", kEvaluationDepthMax, " deep"));
  return !failed();
}

Value Rendering::Fail(std::string_view sentence) {
  if (!failed())
    failure_ = absl::InvalidArgumentError(
        Sentence("the model's chat template can't be applied to these messages: line ", line_, ": ",
                 sentence));
  return Value();
}

Value Rendering::RaiseException(std::string_view text) {
  if (!failed()) failure_ = absl::InvalidArgumentError(std::string(text));
  return Value();
}

Value Rendering::MakeText(std::string text) {
  if (!SpendBytes(text.size())) return Value();
  if (text.size() > kTextBytesMax)
    return Fail(Sentence("a text of ", text.size(), " bytes; at most ", kTextBytesMax));
  return Value(std::move(text));
}

Value Rendering::Checked(Value value) {
  if (value.depth() > kValueDepthMax)
    return Fail(Sentence("values nest over ", kValueDepthMax, " deep"));
  return value;
}

Value Rendering::Make(SequenceForm form, Values items) {
  return Spend(items.size() + 1) ? Checked(MakeSequence(form, std::move(items))) : Value();
}

Value Rendering::MakeDictionary(std::vector<std::pair<Value, Value>> entries) {
  return Spend(entries.size() + 1) ? Checked(MakeMapping(std::move(entries))) : Value();
}

}  // namespace serve::llm::jinja
