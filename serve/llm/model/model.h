// What a model's files say, whatever their format: sizes, tensors, tokenizer, and how its texts
// begin and end.
//
// Parts that cannot be served are there as the reason for that, so that all reasons can be shown
// at once. What the engine needs (sizes, tensors) and what a front needs (tokenizer, text) do not
// depend on each other.
//
// Thread safety: const from any thread. Ownership: tensors' bytes are those of the mapped files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "serve/llm/format/gguf.h"
#include "serve/llm/format/tensor.h"
#include "serve/llm/model/architecture.h"
#include "serve/llm/model/model_tensors.h"
#include "serve/llm/text/tokenizer.h"

namespace serve::llm {

inline constexpr size_t kChatTemplateBytesMax = 1 << 20;

// How texts of a model begin and end.
struct ModelText {
  std::vector<int32_t> ends;  // tokens at which an answer ends, in ascending order; may be none
  std::string chat_template;  // in the language Jinja; empty: the model has none
  std::string first_token;    // what templates call bos_token; empty: there is none
  std::string end_token;      // what templates call eos_token
};

// Failures are ends of sentences that begin with the name of the file or directory.
struct Model {
  std::string format;        // "gguf" or "safetensors"
  uint32_t version = 0;      // of GGUF
  std::string architecture;  // as the files say, as the next two; not cleaned
  std::string name;
  std::string tokenizer_kind;  // "gpt2 (smollm)": the kind, and how text is split before
  absl::StatusOr<ModelSizes> sizes;
  TensorSet file_tensors;
  ModelTensors tensors;  // where there are sizes
  // Has a number for each logit at least: numbers without a token stand for no text.
  absl::StatusOr<Tokenizer> tokenizer;
  absl::StatusOr<ModelText> text;  // where there is a tokenizer

  // All reasons for which the model is not served; empty: it is.
  std::vector<std::string> Refusals() const;
};

// `gguf` looks into a file that outlives the model's tensors, and is not needed afterwards.
Model ModelOfGguf(const Gguf& gguf);

// The files of a model's directory as they are. Empty: the directory has no such file.
struct DirectoryTexts {
  std::string name;  // the directory's own
  std::string_view config;
  std::string_view tokenizer;
  std::string_view tokenizer_config;
  std::string_view generation_config;
  std::string_view chat_template;  // chat_template.jinja
};

Model ModelOfDirectoryUntrusted(const DirectoryTexts& texts, TensorSet tensors);

}  // namespace serve::llm
