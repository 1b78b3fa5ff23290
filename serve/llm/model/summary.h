// The contents of a model's file in figures, and the reasons for which it would be refused:
// `laneway model show` prints them. Pure. Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "serve/llm/format/gguf.h"
#include "serve/llm/model/architecture.h"

namespace serve::llm {

struct TypeUse {
  std::string type;
  uint64_t tensors = 0;
  uint64_t elements = 0;
  uint64_t bytes = 0;
};

struct ModelSummary {
  uint32_t version = 0;      // of GGUF
  std::string architecture;  // as the file says; texts of the file are not cleaned
  std::string name;
  std::string tokenizer;            // "gpt2 (smollm)": the kind, and how text is split before
  std::optional<ModelSizes> sizes;  // of an architecture that is served
  uint64_t parameters = 0;
  std::vector<TypeUse> types;         // the one with the most bytes first
  std::vector<std::string> refusals;  // ends of sentences; empty: the file would be served
};

ModelSummary Summarise(const Gguf& gguf);

}  // namespace serve::llm
