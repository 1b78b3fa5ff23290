#include "serve/llm/text/jinja/operations.h"
#include "serve/llm/text/jinja/sentence.h"

namespace serve::llm::jinja {

bool IsTrue(const Value& value) {
  int64_t number = 0;
  if (value.IsUndefined() || value.IsNone()) return false;
  if (value.AsInteger(&number)) return number != 0;
  if (const double* const given = value.AsFloat()) return *given != 0;
  if (const std::string* const text = value.AsText()) return !text->empty();
  if (const Mapping* const mapping = value.AsMapping()) return !mapping->entries.empty();
  const Sequence* const sequence = value.AsSequence();
  return sequence == nullptr || sequence->form == SequenceForm::kGenerator ||
         !sequence->items.empty();
}

Values ItemsOf(Rendering& rendering, const Value& value) {
  Values items;
  if (value.IsUndefined()) return items;
  if (const std::string* const text = value.AsText()) {
    if (!rendering.Spend(text->size() + 1)) return items;
    const std::vector<size_t> starts = CharacterStarts(*text);
    for (size_t index = 0; index + 1 < starts.size(); ++index)
      items.emplace_back(
          std::string_view(*text).substr(starts[index], starts[index + 1] - starts[index]));
    return items;
  }
  if (const Mapping* const mapping = value.AsMapping()) {
    if (!rendering.Spend(mapping->entries.size() + 1)) return items;
    for (const auto& [key, held] : mapping->entries) items.push_back(key);
    return items;
  }
  const Sequence* const sequence = value.AsSequence();
  if (sequence == nullptr) {
    rendering.Fail(Sentence("a value of type ", value.type_name(), " has no items"));
    return items;
  }
  if (sequence->taken || !rendering.Spend(sequence->items.size() + 1)) return items;
  sequence->taken = sequence->form == SequenceForm::kGenerator;
  return sequence->items;
}

std::optional<int64_t> LengthOf(Rendering& rendering, const Value& value) {
  if (value.IsUndefined()) return 0;
  if (const std::string* const text = value.AsText()) {
    if (!rendering.SpendBytes(text->size())) return 0;
    return static_cast<int64_t>(CharacterStarts(*text).size()) - 1;
  }
  if (const Mapping* const mapping = value.AsMapping())
    return static_cast<int64_t>(mapping->entries.size());
  if (const Loop* const loop = value.AsLoop()) return static_cast<int64_t>(loop->items.size());
  const Sequence* const sequence = value.AsSequence();
  if (sequence == nullptr || sequence->form == SequenceForm::kGenerator) return std::nullopt;
  return static_cast<int64_t>(sequence->items.size());
}

}  // namespace serve::llm::jinja
