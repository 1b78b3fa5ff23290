// The side files of a model's directory from anywhere: config.json, tokenizer.json,
// tokenizer_config.json, generation_config.json, chat_template.jinja and the index of tensors, with
// a zero byte after each. Whatever they say, there is a model or there are reasons against it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "serve/llm/model/model.h"
#include "serve/llm/model/summary.h"
#include "serve/llm/model/tensor_files.h"

namespace {

std::string_view TakeText(std::string_view* rest) {
  const std::string_view text = rest->substr(0, rest->find('\0'));
  rest->remove_prefix(std::min(rest->size(), text.size() + 1));
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  serve::llm::DirectoryTexts texts;
  texts.config = TakeText(&rest);
  texts.tokenizer = TakeText(&rest);
  texts.tokenizer_config = TakeText(&rest);
  texts.generation_config = TakeText(&rest);
  texts.chat_template = TakeText(&rest);
  const absl::StatusOr<serve::llm::TensorIndex> index =
      serve::llm::DecodeTensorIndexUntrusted(TakeText(&rest));
  if (!index.ok() && index.status().message().empty()) std::abort();
  // The names of the index are tensors without bytes.
  serve::llm::TensorSet tensors;
  if (index.ok()) {
    for (const auto& [name, file] : *index)
      tensors.Add({name, serve::llm::FindTensorType(0), {0}, {}});
  }
  const serve::llm::Model model = serve::llm::ModelOfDirectoryUntrusted(texts, std::move(tensors));
  for (const std::string& refusal : serve::llm::Summarise(model).refusals) {
    if (refusal.empty()) std::abort();
  }
  if (!model.text.ok()) return 0;
  for (const int32_t end : model.text->ends) {
    if (end < 0 || static_cast<size_t>(end) >= model.tokenizer->size()) std::abort();
  }
  return 0;
}
