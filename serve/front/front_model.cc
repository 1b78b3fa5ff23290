#include "serve/front/front_model.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/llm/arguments.h"
#include "serve/engine/child_process.h"
#include "serve/front/token_text.h"
#include "serve/llm/model/config_writer.h"
#include "serve/llm/text/tokenizer_json_writer.h"

namespace serve::front {
namespace {

std::string DirectoryOf(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::path whole = std::filesystem::absolute(path, ignored).lexically_normal();
  return std::filesystem::is_directory(whole, ignored) ? whole.string()
                                                       : whole.parent_path().string();
}

uint64_t KvBlockBytes(const llm::ModelSizes& sizes, uint32_t kv_type) {
  const bool is_half = kv_type == static_cast<uint32_t>(kernels::llm::KvType::kHalf);
  const uint64_t element_bytes = is_half ? sizeof(uint16_t) : sizeof(float);
  return kernels::llm::kBlockTokens * sizes.KvBytesOfToken(element_bytes);
}

// Nothing: the text is none of the tokens.
std::optional<int32_t> NumberOf(const std::string& text, const llm::TokenizerParts& parts) {
  const auto found = std::find(parts.tokens.begin(), parts.tokens.end(), text);
  if (text.empty() || found == parts.tokens.end()) return std::nullopt;
  return static_cast<int32_t>(found - parts.tokens.begin());
}

}  // namespace

std::string IdOfPath(const std::string& path) {
  std::filesystem::path name = std::filesystem::path(path).lexically_normal();
  if (!name.has_filename()) name = name.parent_path();
  if (name.extension() == ".gguf") return name.stem().string();
  return name.filename().string();
}

FrontModel::FrontModel(std::string id, const std::string& path, llm::ModelFile file)
    : id_(std::move(id)),
      place_(DirectoryOf(path)),
      created_(std::time(nullptr)),
      file_(std::move(file)),
      lines_(id_, isatty(STDERR_FILENO) != 0) {}

absl::StatusOr<std::unique_ptr<FrontModel>> FrontModel::Open(EventLoop* loop, const std::string& id,
                                                             const std::string& path,
                                                             const llm::ServeOptions& options) {
  absl::StatusOr<llm::ModelFile> file = llm::ModelFile::OpenUntrusted(path);
  if (!file.ok()) return file.status();
  if (const std::vector<std::string> refusals = file->model().Refusals(); !refusals.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, " ", refusals.front(), "; laneway model show ", path, " tells what it has"));
  }
  absl::StatusOr<llm::EngineGeneratorOptions> engine =
      llm::OptionsForModel(options, path, file->model(), {engine::OwnPath(), "--engine"});
  if (!engine.ok()) return engine.status();
  std::unique_ptr<FrontModel> model(new FrontModel(id, path, *std::move(file)));
  model->context_ = engine->generation.batcher.context_max;
  model->kv_block_bytes_ = KvBlockBytes(*model->file_.model().sizes, engine->load.kv_type);
  const std::string& text = model->file_.model().text->chat_template;
  absl::StatusOr<llm::ChatTemplate> parsed = llm::ChatTemplate::ParseUntrusted(text);
  if (text.empty()) {
    model->template_fault_ = "has no chat template; use /v1/completions";
  } else if (parsed.ok()) {
    model->template_ = *std::move(parsed);
  } else {
    model->template_fault_ =
        absl::StrCat("has a chat template that is not read: the chat template ",
                     std::string(parsed.status().message()));
  }
  FrontModel* const self = model.get();
  model->generator_ = std::make_unique<llm::EngineGenerator>(
      loop, *std::move(engine), [self](const llm::EngineStatus& status) { self->Observe(status); });
  return model;
}

absl::StatusOr<TokenizerFiles> FrontModel::WrittenTokenizer() const {
  const absl::StatusOr<llm::TokenizerParts> parts = file_.PartsOfTokenizerUntrusted();
  if (!parts.ok()) return parts.status();
  absl::StatusOr<std::string> tokenizer = llm::TokenizerJson(*parts);
  if (!tokenizer.ok()) return tokenizer.status();
  const llm::ModelText& text = *file_.model().text;
  llm::ConfigFacts facts;
  facts.tied = file_.model().tensors.Find("output.weight") == nullptr;
  facts.first = NumberOf(text.first_token, *parts);
  facts.ends = text.ends;
  return TokenizerFiles{*std::move(tokenizer),
                        llm::TokenizerConfigJson(*parts, {text.first_token, text.end_token,
                                                          text.chat_template, context_}),
                        llm::ConfigJson(*file_.model().sizes, facts)};
}

absl::Status FrontModel::KeepTokenizer() {
  if (file_.model().format != "gguf") return absl::OkStatus();
  const absl::StatusOr<TokenizerFiles> files = WrittenTokenizer();
  if (!files.ok())
    return absl::Status(files.status().code(),
                        absl::StrCat("the model ", std::string(files.status().message())));
  const absl::StatusOr<std::string> cache = TokenizerCacheDirectory();
  if (!cache.ok()) return cache.status();
  absl::StatusOr<KeptTokenizer> kept = front::KeepTokenizer(*cache, *files);
  if (!kept.ok()) return kept.status();
  tokenizer_files_ = *std::move(kept);
  return absl::OkStatus();
}

void FrontModel::Observe(const llm::EngineStatus& status) {
  was_ready_ = was_ready_ || status.state == llm::EngineState::kReady;
  std::fputs(lines_.Next(status).c_str(), stderr);
}

void FrontModel::Drain(std::function<void()> done) {
  draining_ = true;
  generator_->Drain(std::move(done));
}

// Once an engine was ready, requests wait for the next one.
openai::ModelState FrontModel::state() const {
  if (draining_) return openai::ModelState::kDraining;
  return was_ready_ ? openai::ModelState::kReady : openai::ModelState::kLoading;
}

absl::StatusOr<std::vector<int32_t>> FrontModel::Encode(std::string_view text, bool control,
                                                        bool first) const {
  return tokenizer().Encode(text,
                            control ? llm::ControlTokens::kParsed : llm::ControlTokens::kAsText,
                            first ? llm::FirstToken::kAdded : llm::FirstToken::kLeftOut);
}

std::string FrontModel::Decode(const std::vector<int32_t>& tokens) const {
  llm::Detokenizer characters;
  std::string text;
  for (const int32_t token : tokens) text += characters.Add(tokenizer().BytesOf(token));
  return text + characters.Flush();
}

std::string FrontModel::DecodeText(const std::vector<int32_t>& tokens) const {
  std::string text = Decode(tokens);
  if (tokenizer().drops_first_space() && text.starts_with(' ')) text.erase(0, 1);
  return text;
}

absl::StatusOr<std::string> FrontModel::RenderChat(const std::vector<openai::ChatMessage>& messages,
                                                   bool add_generation_prompt) const {
  if (!template_.has_value())
    return absl::InvalidArgumentError(absl::StrCat("the model ", id_, " ", template_fault_));
  const llm::ModelText& text = *file_.model().text;
  llm::Conversation conversation;
  for (const openai::ChatMessage& message : messages)
    conversation.messages.push_back({{"role", message.role}, {"content", message.content}});
  conversation.add_generation_prompt = add_generation_prompt;
  if (!text.first_token.empty()) conversation.bos_token = text.first_token;
  if (!text.end_token.empty()) conversation.eos_token = text.end_token;
  const std::time_t now = std::time(nullptr);
  localtime_r(&now, &conversation.now);
  return template_->Render(conversation);
}

std::unique_ptr<openai::AnswerText> FrontModel::NewAnswerText(
    const openai::AnswerTextOptions& options) const {
  return std::make_unique<TokenText>(&tokenizer(), options);
}

}  // namespace serve::front
