// A model on disk: a .gguf file, or a directory of config.json, tokenizer.json and tensors in
// safetensors files (model.safetensors, those that model.safetensors.index.json names, or all that
// are there). The directory may have tokenizer_config.json, generation_config.json and
// chat_template.jinja besides. Files are mapped, so that opening a model reads none of its weights.
//
// This is the one door for models: files are decoded with the decoders of format/ and text/, each
// of which checks its bytes. The size of every file is bounded, except for files of tensors.
//
// Thread safety: const methods from any thread. Ownership: the mappings end with the object.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "serve/llm/format/mapped_file.h"
#include "serve/llm/model/model.h"

namespace serve::llm {

inline constexpr size_t kModelFilesMax = 1024;  // of tensors in a directory

class ModelFile {
 public:
  // A failure is a sentence with the path in it: files that cannot be read, or are damaged. What
  // keeps a model that can be read from being served is in model().
  static absl::StatusOr<ModelFile> OpenUntrusted(const std::string& path);

  const Model& model() const { return model_; }

  // The parts of the tokenizer of a GGUF file. They are read anew, since model() keeps the finished
  // tokenizer alone.
  // A failure is the end of a sentence. REQUIRES: model() was read from a GGUF file.
  absl::StatusOr<TokenizerParts> PartsOfTokenizerUntrusted() const;

 private:
  ModelFile(std::vector<MappedFile> files, Model model)
      : files_(std::move(files)), model_(std::move(model)) {}

  static absl::StatusOr<ModelFile> OfGguf(MappedFile file);
  static absl::StatusOr<ModelFile> OfDirectory(const std::string& path);

  std::vector<MappedFile> files_;
  Model model_;
};

}  // namespace serve::llm
