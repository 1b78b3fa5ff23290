// A language model as the front serves it: the text of its files, and an engine that generates.
//
// Thread safety: the front's event loop. Ownership: the loop outlives the model.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "serve/front/loading_lines.h"
#include "serve/front/tokenizer_cache.h"
#include "serve/llm/generation/engine_generator.h"
#include "serve/llm/model/model_file.h"
#include "serve/llm/serve_options.h"
#include "serve/llm/text/chat_template.h"
#include "serve/loop/event_loop.h"
#include "serve/openai/served_model.h"

namespace serve::front {

class FrontModel final : public openai::ServedModel {
 public:
  // `path`: a .gguf file or a directory. Fails with a sentence where the model is not served.
  static absl::StatusOr<std::unique_ptr<FrontModel>> Open(EventLoop* loop, const std::string& id,
                                                          const std::string& path,
                                                          const llm::ServeOptions& options);

  // Makes root() a directory from which clients load the tokenizer. That of a GGUF file has none:
  // one is kept in the user's cache (tokenizer_cache.h). A failure is a sentence, and root() stays.
  absl::Status KeepTokenizer();
  // Starts the engine.
  void Start() { generator_->Start(); }
  // Refuses new requests; calls `done` after the last answer.
  void Drain(std::function<void()> done);
  const llm::EngineGenerator& engine() const { return *generator_; }
  // Of the keys and values of a block, in all stages.
  uint64_t kv_block_bytes() const { return kv_block_bytes_; }

  const std::string& id() const override { return id_; }
  int64_t created() const override { return created_; }
  const std::string& root() const override {
    return tokenizer_files_.has_value() ? tokenizer_files_->directory() : place_;
  }
  int32_t context() const override { return context_; }
  int32_t vocabulary() const override {
    return static_cast<int32_t>(file_.model().sizes->vocabulary);
  }
  openai::ModelState state() const override;
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text, bool control,
                                              bool first) const override;
  std::string_view BytesOf(int32_t token) const override { return tokenizer().BytesOf(token); }
  std::string Decode(const std::vector<int32_t>& tokens) const override;
  std::string DecodeText(const std::vector<int32_t>& tokens) const override;
  absl::StatusOr<std::string> RenderChat(const std::vector<openai::ChatMessage>& messages,
                                         bool add_generation_prompt) const override;
  std::unique_ptr<openai::AnswerText> NewAnswerText(
      const openai::AnswerTextOptions& options) const override;
  llm::Generator& generator() override { return *generator_; }

 private:
  FrontModel(std::string id, const std::string& path, llm::ModelFile file);
  const llm::Tokenizer& tokenizer() const { return *file_.model().tokenizer; }
  absl::StatusOr<TokenizerFiles> WrittenTokenizer() const;
  void Observe(const llm::EngineStatus& status);

  const std::string id_;
  const std::string place_;  // the directory where the model is
  const int64_t created_;
  const llm::ModelFile file_;
  std::optional<KeptTokenizer> tokenizer_files_;
  std::optional<llm::ChatTemplate> template_;
  std::string template_fault_;  // the end of a sentence, where there is no template
  int32_t context_ = 0;
  uint64_t kv_block_bytes_ = 0;
  LoadingLines lines_;
  std::unique_ptr<llm::EngineGenerator> generator_;
  bool was_ready_ = false;
  bool draining_ = false;
};

// The name of a model for which the user gives none: that of its file or directory.
std::string IdOfPath(const std::string& path);

}  // namespace serve::front
