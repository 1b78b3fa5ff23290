#include "serve/llm/model/summary.h"

#include <algorithm>

namespace serve::llm {
namespace {

std::vector<TypeUse> TypesOf(const TensorSet& tensors) {
  std::vector<TypeUse> types;
  for (const Tensor& tensor : tensors.all()) {
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

}  // namespace

ModelSummary Summarise(const Model& model) {
  ModelSummary summary;
  summary.format = model.format;
  summary.version = model.version;
  summary.architecture = model.architecture;
  summary.name = model.name;
  summary.tokenizer = model.tokenizer_kind;
  summary.types = TypesOf(model.file_tensors);
  for (const TypeUse& use : summary.types) summary.parameters += use.elements;
  if (model.sizes.ok()) summary.sizes = *model.sizes;
  if (model.text.ok()) summary.text = *model.text;
  summary.refusals = model.Refusals();
  return summary;
}

}  // namespace serve::llm
