#include "tests/serve/openai/scripted_model.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/serve/openai/scripted_answer_text.h"

namespace serve::openai {
namespace {

// What stands between `word` and ';'.
std::optional<std::string> WordAfter(const std::string& prompt, std::string_view word) {
  const size_t begin = prompt.find(word);
  if (begin == std::string::npos) return std::nullopt;
  const size_t end = prompt.find(';', begin);
  if (end == std::string::npos) return std::nullopt;
  return prompt.substr(begin + word.size(), end - begin - word.size());
}

bool Has(const std::string& prompt, const char* word) {
  return prompt.find(word) != std::string::npos;
}

int32_t NumberAfter(const std::string& prompt, std::string_view word) {
  const std::optional<std::string> text = WordAfter(prompt, word);
  return text.has_value() ? static_cast<int32_t>(std::strtol(text->c_str(), nullptr, 10)) : -1;
}

}  // namespace

absl::StatusOr<std::vector<int32_t>> ScriptedModel::Encode(std::string_view text, bool,
                                                           bool first) const {
  std::vector<int32_t> tokens;
  if (first && !text.empty()) tokens.push_back(kFirst);
  for (const char c : text) tokens.push_back(static_cast<uint8_t>(c));
  return tokens;
}

std::string_view ScriptedModel::BytesOf(int32_t token) const {
  static const std::string& bytes = *new std::string([] {
    std::string all;
    for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
    return all;
  }());
  return token < 256 ? std::string_view(bytes).substr(static_cast<size_t>(token), 1) : "";
}

std::string ScriptedModel::Decode(const std::vector<int32_t>& tokens) const {
  serve::llm::Detokenizer detokenizer;
  std::string text;
  for (const int32_t token : tokens) text += detokenizer.Add(BytesOf(token));
  return text + detokenizer.Flush();
}

absl::StatusOr<std::string> ScriptedModel::RenderChat(const std::vector<ChatMessage>& messages,
                                                      bool add_generation_prompt) const {
  std::string text;
  for (const ChatMessage& message : messages) {
    if (message.role != "user" && message.role != "assistant" && message.role != "system")
      return absl::InvalidArgumentError(
          absl::StrCat("the template knows no role '", message.role, "'"));
    absl::StrAppend(&text, "<", message.role, ">", message.content, "\n");
  }
  return text + (add_generation_prompt ? "<assistant>" : "");
}

std::unique_ptr<AnswerText> ScriptedModel::NewAnswerText(const AnswerTextOptions& options) const {
  return std::make_unique<ScriptedAnswerText>(options);
}

llm::RequestId ScriptedModel::Submit(llm::GenerationRequest request,
                                     llm::GenerationListener* listener) {
  const llm::RequestId id = ++last_;
  Running running;
  running.prompt = Decode(request.prompt);
  running.listener = listener;
  running.released_before = released_;
  running.given.resize(static_cast<size_t>(request.answers));
  running.ended.resize(static_cast<size_t>(request.answers));
  running.request = std::move(request);
  tell_(absl::StrCat("submitted ", id));
  if (Has(running.prompt, "reject;")) {
    listener->OnRejected(llm::Refusal::kQueueFull, 7);
  } else {
    running_.emplace(id, std::move(running));
  }
  return id;
}

void ScriptedModel::Cancel(llm::RequestId request) {
  if (running_.erase(request) != 0) tell_(absl::StrCat("cancelled ", request));
}

bool ScriptedModel::Waits(const Running& running) const {
  if (released_ != running.released_before) return false;
  if (Has(running.prompt, "queued;")) return true;
  const int32_t after = NumberAfter(running.prompt, "after:");
  return after >= 0 && running.given[0] >= after;
}

bool ScriptedModel::busy() const {
  return std::any_of(running_.begin(), running_.end(),
                     [this](const auto& entry) { return !Waits(entry.second); });
}

void ScriptedModel::Step() {
  std::vector<llm::RequestId> ids;
  for (const auto& [id, running] : running_)
    if (!Waits(running)) ids.push_back(id);
  for (const llm::RequestId id : ids)
    if (running_.count(id) != 0) StepRequest(id);  // a request's failure cancels others
}

void ScriptedModel::StepRequest(llm::RequestId id) {
  const Running& running = running_.at(id);
  if (Has(running.prompt, "late;")) {
    llm::GenerationListener* const listener = running.listener;
    running_.erase(id);
    return listener->OnRejected(llm::Refusal::kQueueFull, 7);
  }
  const int32_t answers = running.request.answers;
  for (int32_t answer = 0; answer < answers; ++answer) {
    const auto found = running_.find(id);
    if (found == running_.end()) return;
    if (!found->second.ended[static_cast<size_t>(answer)]) StepAnswer(id, answer);
  }
}

void ScriptedModel::StepAnswer(llm::RequestId id, int32_t answer) {
  Running& running = running_.at(id);
  int32_t& given = running.given[static_cast<size_t>(answer)];
  if (given == NumberAfter(running.prompt, "expire:"))
    return EndAnswer(id, answer, llm::Ending::kExpired);
  if (given == 1 && Has(running.prompt, "fault;"))
    return EndAnswer(id, answer, llm::Ending::kEngineFault);
  const llm::GeneratedToken token = NextToken(running, answer);
  ++given;
  const bool ends = running.listener->OnToken(token);
  if (ends || token.stops) return EndAnswer(id, answer, llm::Ending::kStopped);
  if (given == running.request.new_max) EndAnswer(id, answer, llm::Ending::kLength);
}

void ScriptedModel::EndAnswer(llm::RequestId id, int32_t answer, llm::Ending why) {
  Running& running = running_.at(id);
  running.ended[static_cast<size_t>(answer)] = true;
  llm::GenerationListener* const listener = running.listener;
  if (std::all_of(running.ended.begin(), running.ended.end(), [](bool ended) { return ended; })) {
    running_.erase(id);
    tell_(absl::StrCat("ended ", id));
  }
  listener->OnAnswerEnded(answer, why);
}

llm::GeneratedToken ScriptedModel::NextToken(const Running& running, int32_t answer) const {
  const llm::SamplingParameters& sampling = running.request.sampling;
  const size_t place = static_cast<size_t>(running.given[static_cast<size_t>(answer)]);
  llm::GeneratedToken token;
  token.answer = answer;
  const std::optional<std::string> script = WordAfter(running.prompt, "say:");
  const uint64_t seed =
      sampling.temperature > 0 ? sampling.seed + static_cast<uint64_t>(answer) : 0;
  const uint64_t mixed = (seed * 1'000'003 + place + 1) * 0x9e3779b97f4a7c15u;
  token.token = 'a' + static_cast<int32_t>((mixed >> 33) % 26);
  if (script.has_value() && place < script->size())
    token.token = static_cast<uint8_t>((*script)[place]);
  if (script.has_value() && place >= script->size() && !sampling.ignore_eos) {
    token.token = kEnd;
    token.stops = true;
  }
  token.logprob = -0.5f;
  for (int32_t i = 0; i < sampling.logprobs; ++i)
    token.top.push_back({'A' + i, -1.0f - static_cast<float>(i)});
  return token;
}

}  // namespace serve::openai
