#include "serve/llm/model/model.h"

namespace serve::llm {

std::vector<std::string> Model::Refusals() const {
  std::vector<std::string> refusals;
  if (sizes.ok())
    refusals = tensors.faults();
  else
    refusals.emplace_back(sizes.status().message());
  if (!tokenizer.ok())
    refusals.emplace_back(tokenizer.status().message());
  else if (!text.ok())
    refusals.emplace_back(text.status().message());
  return refusals;
}

}  // namespace serve::llm
