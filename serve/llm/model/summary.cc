#include "serve/llm/model/summary.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "serve/llm/text/tokenizer.h"

namespace serve::llm {
namespace {

std::vector<TypeUse> TypesOf(const Gguf& gguf) {
  std::vector<TypeUse> types;
  for (const GgufTensor& tensor : gguf.tensors()) {
    auto use = std::find_if(types.begin(), types.end(), [&tensor](const TypeUse& known) {
      return known.type == tensor.type->name;
    });
    if (use == types.end()) use = types.insert(use, {std::string(tensor.type->name)});
    ++use->tensors;
    use->elements += tensor.Elements();
    use->bytes += tensor.bytes.size();
  }
  std::stable_sort(types.begin(), types.end(),
                   [](const TypeUse& a, const TypeUse& b) { return a.bytes > b.bytes; });
  return types;
}

std::string TokenizerOf(const Gguf& gguf) {
  const std::string kind(gguf.Text("tokenizer.ggml.model").value_or(""));
  const std::string split(gguf.Text("tokenizer.ggml.pre").value_or(""));
  return kind.empty() || split.empty() ? kind : absl::StrCat(kind, " (", split, ")");
}

}  // namespace

ModelSummary Summarise(const Gguf& gguf) {
  ModelSummary summary;
  summary.version = gguf.version();
  summary.architecture = gguf.Text("general.architecture").value_or("");
  summary.name = gguf.Text("general.name").value_or("");
  summary.tokenizer = TokenizerOf(gguf);
  summary.types = TypesOf(gguf);
  for (const TypeUse& use : summary.types) summary.parameters += use.elements;
  const absl::StatusOr<ModelSizes> sizes = SizesOf(gguf);
  if (sizes.ok()) {
    summary.sizes = *sizes;
    summary.refusals = TensorFaults(gguf, *sizes);
  } else {
    summary.refusals.emplace_back(sizes.status().message());
  }
  if (const absl::Status tokenizer = Tokenizer::OfGguf(gguf).status(); !tokenizer.ok())
    summary.refusals.emplace_back(tokenizer.message());
  return summary;
}

}  // namespace serve::llm
