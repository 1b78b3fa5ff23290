// Tokenizers from GGUF files that a test writes.
#pragma once

#include <string>

#include "serve/llm/text/tokenizer.h"
#include "tests/serve/llm/format/gguf_writer.h"

namespace serve::llm {

inline absl::StatusOr<Tokenizer> Made(const GgufWriter& writer) {
  const std::string file = writer.File();
  return Tokenizer::OfGguf(*DecodeGgufUntrusted(AsBytes(file)));
}

inline std::string WhyNot(const GgufWriter& writer) {
  return std::string(Made(writer).status().message());
}

}  // namespace serve::llm
