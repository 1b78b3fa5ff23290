// A model without a device, whose answers a prompt's words choose: tokens 0 to 255 are bytes.
//
//   say:TEXT;   TEXT, then the end; else letters that depend on seed, answer and place alone
//   queued;     nothing until Release
//   after:N;    N tokens, then nothing until Release
//   reject;     refused at once: the queue is full        late;   the same, one step later
//   expire:N;   the deadline passes after N tokens        fault;  the engine fails after one token
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "serve/openai/served_model.h"

namespace serve::openai {

class ScriptedModel : public ServedModel, public llm::Generator {
 public:
  static constexpr int32_t kEnd = 256;
  static constexpr int32_t kFirst = 257;

  // `tell` hears "submitted ID", "cancelled ID" and "ended ID".
  explicit ScriptedModel(std::function<void(const std::string&)> tell) : tell_(std::move(tell)) {}

  // Gives each answer that does not wait its next token.
  void Step();
  bool busy() const;
  void Release() { ++released_; }
  void SetState(ModelState state) { state_ = state; }

  const std::string& id() const override { return id_; }
  int64_t created() const override { return 1'700'000'000; }
  const std::string& root() const override { return root_; }
  int32_t context() const override { return 1024; }
  int32_t vocabulary() const override { return 258; }
  ModelState state() const override { return state_; }
  absl::StatusOr<std::vector<int32_t>> Encode(std::string_view text, bool control,
                                              bool first) const override;
  std::string_view BytesOf(int32_t token) const override;
  std::string Decode(const std::vector<int32_t>& tokens) const override;
  std::string DecodeText(const std::vector<int32_t>& tokens) const override {
    return Decode(tokens);
  }
  absl::StatusOr<std::string> RenderChat(const std::vector<ChatMessage>& messages,
                                         bool add_generation_prompt) const override;
  std::unique_ptr<AnswerText> NewAnswerText(const AnswerTextOptions& options) const override;
  llm::Generator& generator() override { return *this; }

  llm::RequestId Submit(llm::GenerationRequest request, llm::GenerationListener* listener) override;
  void Cancel(llm::RequestId request) override;

 private:
  struct Running {
    llm::GenerationRequest request;
    llm::GenerationListener* listener;
    std::string prompt;
    uint64_t released_before = 0;
    std::vector<int32_t> given;  // tokens of each answer
    std::vector<bool> ended;
  };

  bool Waits(const Running& running) const;
  void StepRequest(llm::RequestId id);
  void StepAnswer(llm::RequestId id, int32_t answer);
  void EndAnswer(llm::RequestId id, int32_t answer, llm::Ending why);
  llm::GeneratedToken NextToken(const Running& running, int32_t answer) const;

  const std::string id_ = "scripted", root_ = "/nonexistent/scripted";
  const std::function<void(const std::string&)> tell_;
  ModelState state_ = ModelState::kReady;
  std::map<llm::RequestId, Running> running_;
  llm::RequestId last_ = 0;
  uint64_t released_ = 0;
};

}  // namespace serve::openai
