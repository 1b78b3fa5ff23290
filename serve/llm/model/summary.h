// The contents of a model's files in figures, and the reasons for which it would be refused:
// `laneway model show` prints them. Pure. Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "serve/llm/model/model.h"

namespace serve::llm {

struct TypeUse {
  std::string type;
  uint64_t tensors = 0;
  uint64_t elements = 0;
  uint64_t bytes = 0;
};

struct ModelSummary {
  std::string format;  // as the next ones in Model; texts of files are not cleaned
  uint32_t version = 0;
  std::string architecture;
  std::string name;
  std::string tokenizer;
  std::optional<ModelSizes> sizes;  // of an architecture that is served
  uint64_t parameters = 0;
  std::vector<TypeUse> types;  // the one with the most bytes first
  std::optional<ModelText> text;
  std::vector<std::string> refusals;  // ends of sentences; empty: the model would be served
};

ModelSummary Summarise(const Model& model);

}  // namespace serve::llm
