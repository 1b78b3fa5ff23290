// The config.json that the package transformers looks for beside a tokenizer, written of a model's
// sizes: a model in a GGUF file has none of its own. SizesOfConfig reads the same sizes from it.
//
// No layers are loaded by it, so it does not say what only layers need: how positions are scaled.
// Thread safety: functions without state. Source: transformers 5, the configurations of the classes
// that config_sizes.cc lists.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "serve/llm/model/architecture.h"

namespace serve::llm {

struct ConfigFacts {
  bool tied = false;             // the embedding of tokens makes the logits, too
  std::optional<int32_t> first;  // the token that begins a text
  std::vector<int32_t> ends;     // tokens at which an answer ends
};

// REQUIRES: sizes.architecture is not null.
std::string ConfigJson(const ModelSizes& sizes, const ConfigFacts& facts);

}  // namespace serve::llm
