#include "serve/openai/completion.h"

#include <algorithm>
#include <utility>

#include "serve/http/event_stream.h"

namespace serve::openai {

// The part of a completion that one prompt is.
struct Completion::Submission : llm::GenerationListener {
  void OnBegan(const llm::Beginning& beginning) override { completion->OnBegan(beginning); }
  bool OnToken(const llm::GeneratedToken& token) override {
    const std::shared_ptr<Completion> alive = completion->shared_from_this();
    return completion->OnToken(*this, token);
  }
  void OnAnswerEnded(int32_t answer, llm::Ending why) override {
    const std::shared_ptr<Completion> alive = completion->shared_from_this();
    completion->OnAnswerEnded(this, answer, why);
  }
  void OnRejected(llm::Refusal why, int64_t retry_after_s) override {
    const std::shared_ptr<Completion> alive = completion->shared_from_this();
    completion->OnRejected(this, OfRefusal(why, retry_after_s));
  }

  Completion* completion = nullptr;
  size_t first_answer = 0;
  int32_t new_max = 0;
  int32_t open = 0;  // answers that have not ended
  llm::RequestId request = 0;
};

CompletionMetrics::CompletionMetrics(metrics::Registry* registry, const std::string& model,
                                     metrics::LatencyGoals goals)
    : attainment(registry, {{"model_name", model}}, std::move(goals)) {
  const auto name = [](const char* rest) { return std::string("laneway_serve_") + rest; };
  const metrics::Labels labels = {{"model_name", model}};
  const auto succeeded = [&](const char* why) {
    return registry->AddCounter(name("request_success"), "answers, by why they ended",
                                {{"model_name", model}, {"finished_reason", why}});
  };
  prompt_tokens = registry->AddCounter(name("prompt_tokens"), "tokens of prompts", labels);
  generation_tokens = registry->AddCounter(name("generation_tokens"), "tokens of answers", labels);
  succeeded_stop = succeeded("stop");
  succeeded_length = succeeded("length");
  rejections = registry->AddCounter(name("admission_rejections"), "requests refused", labels);
  const auto seconds = [&](const char* what, const char* help) {
    return registry->AddHistogram(name(what), help, metrics::SecondsBounds(), labels);
  };
  queue_time = seconds("request_queue_time_seconds", "from a request to its first step");
  first_token = seconds("time_to_first_token_seconds", "from a request to its first token");
  inter_token = seconds("inter_token_latency_seconds", "between tokens of an answer");
  whole = seconds("e2e_request_latency_seconds", "from a request to its whole answer");
}

Completion::Completion(CompletionTerms terms, ServedModel* model, CompletionMetrics* metrics,
                       std::shared_ptr<http::Responder> responder)
    : terms_(std::move(terms)),
      model_(model),
      metrics_(metrics),
      responder_(std::move(responder)),
      began_us_(terms_.now_us()) {}

Completion::~Completion() = default;

// All answers are there before the first prompt is submitted: the generator may call from within
// Submit, and an event of the first prompt must not look like the end of all. A request whose
// failure is told from within its own Submit has its number only afterwards.
void Completion::Start(Prepared prepared) {
  const std::shared_ptr<Completion> alive = shared_from_this();
  starting_ = true;
  for (size_t i = 0; i < prepared.requests.size(); ++i) {
    const llm::GenerationRequest& request = prepared.requests[i];
    auto submission = std::make_unique<Submission>();
    submission->completion = this;
    submission->first_answer = answers_.size();
    submission->new_max = request.new_max;
    submission->open = request.answers;
    submissions_.push_back(std::move(submission));
    usage_.prompt_tokens += static_cast<int64_t>(request.prompt.size());
    for (int32_t copy = 0; copy < request.answers; ++copy) {
      Answer& answer = answers_.emplace_back();
      answer.choice.index = static_cast<int64_t>(answers_.size()) - 1;
      answer.text = model_->NewAnswerText(prepared.text);
      AddText(&answer, prepared.echoes[i]);
    }
  }
  metrics_->prompt_tokens->Add(static_cast<double>(usage_.prompt_tokens));
  for (size_t i = 0; i < submissions_.size(); ++i) {
    Submission* const submission = submissions_[i].get();
    if (answered_) {
      submission->open = 0;  // an earlier prompt was refused
    } else if (submission->new_max == 0) {
      AnswerWithoutTokens(*submission);
      submission->open = 0;
    } else {
      prepared.requests[i].id = terms_.id;
      submission->request = model_->generator().Submit(std::move(prepared.requests[i]), submission);
    }
  }
  starting_ = false;
  if (answered_) CancelOpenRequests();
  FinishIfWhole();
  EndIfIdle();
}

// max_tokens is 0: the prompt alone is wanted, which no generator computes.
void Completion::AnswerWithoutTokens(const Submission& submission) {
  for (int32_t copy = 0; copy < submission.open; ++copy) {
    Answer& answer = answers_[submission.first_answer + static_cast<size_t>(copy)];
    answer.has_ended = true;
    answer.choice.finish_reason = "length";
    if (terms_.fields.stream) SendChunk(&answer);
  }
}

std::vector<llm::RequestId> Completion::OpenRequests() const {
  std::vector<llm::RequestId> open;
  for (const std::unique_ptr<Submission>& submission : submissions_) {
    if (submission->open > 0) open.push_back(submission->request);
  }
  return open;
}

void Completion::Cancel() {
  const std::shared_ptr<Completion> alive = shared_from_this();
  answered_ = true;
  CancelOpenRequests();
  EndIfIdle();
}

// Requests without a number are not submitted yet, or about to be: Start sees to them.
void Completion::CancelOpenRequests() {
  for (const std::unique_ptr<Submission>& submission : submissions_) {
    if (submission->request != 0 && std::exchange(submission->open, 0) > 0)
      model_->generator().Cancel(submission->request);
  }
}

// --- what the generator says ---------------------------------------------------------------------

// A request that is computed again, after its engine was lost, has begun once.
void Completion::OnBegan(const llm::Beginning& beginning) {
  usage_.cached_tokens += beginning.cached_tokens;
  metrics_->queue_time->Observe(static_cast<double>(beginning.queued_us) * 1e-6);
}

bool Completion::OnToken(const Submission& submission, const llm::GeneratedToken& token) {
  if (answered_) return true;  // the request fails within its own Submit
  Answer& answer = answers_[submission.first_answer + static_cast<size_t>(token.answer)];
  const int64_t now = terms_.now_us();
  const bool is_first = answer.tokens++ == 0;
  ++usage_.completion_tokens;
  metrics_->generation_tokens->Add();
  (is_first ? metrics_->first_token : metrics_->inter_token)
      ->Observe(static_cast<double>(now - (is_first ? began_us_ : answer.last_us)) * 1e-6);
  if (is_first) answer.first_us = now;
  answer.last_us = now;
  if (WantsLogprobs()) answer.choice.tokens.push_back({token, answer.characters});
  const AnswerText::Piece piece = answer.text->Add(token.token, token.stops);
  AddText(&answer, piece.text);
  const bool is_last = token.stops || piece.ends || answer.tokens == submission.new_max;
  // The last token's chunk says why the answer ended, so it waits for the end, which follows at
  // once.
  if (terms_.fields.stream && !is_last) SendChunk(&answer);
  return piece.ends;
}

void Completion::OnAnswerEnded(Submission* submission, int32_t number, llm::Ending why) {
  --submission->open;
  if (!answered_ && why != llm::Ending::kStopped && why != llm::Ending::kLength) {
    Fail(OfEnding(why));
  } else if (!answered_) {
    Answer& answer = answers_[submission->first_answer + static_cast<size_t>(number)];
    const bool stopped = why == llm::Ending::kStopped;
    (stopped ? metrics_->succeeded_stop : metrics_->succeeded_length)->Add();
    metrics_->attainment.CountAnswer(metrics::TimesOfAnswer(
        began_us_, answer.first_us, answer.last_us, terms_.now_us(), answer.tokens));
    AddText(&answer, answer.text->Flush());
    answer.has_ended = true;
    answer.choice.finish_reason = stopped ? "stop" : "length";
    if (terms_.fields.stream) SendChunk(&answer);
  }
  FinishIfWhole();
  EndIfIdle();
}

void Completion::OnRejected(Submission* submission, const Error& error) {
  submission->open = 0;
  metrics_->rejections->Add();
  if (!answered_) Fail(error);
  EndIfIdle();
}

// --- what the client gets ------------------------------------------------------------------------

// Offsets of tokens count characters, as OpenAI's clients do.
void Completion::AddText(Answer* answer, std::string_view text) {
  answer->choice.text += text;
  answer->characters += CharactersOf(text);
}

OrderedJson Completion::Head() const {
  const bool is_chat = terms_.route == kChat;
  const char* const object = !is_chat               ? "text_completion"
                             : terms_.fields.stream ? "chat.completion.chunk"
                                                    : "chat.completion";
  return {
      {"id", terms_.id}, {"object", object}, {"created", terms_.created}, {"model", model_->id()}};
}

bool Completion::WantsLogprobs() const {
  return terms_.fields.logprobs.has_value() || terms_.fields.chat_logprobs;
}

void Completion::SendEvent(OrderedJson choices, bool with_usage) {
  OrderedJson chunk = Head();
  chunk["choices"] = std::move(choices);
  if (with_usage) {
    chunk["usage"] = UsageJson(usage_);
  } else if (terms_.fields.include_usage) {
    chunk["usage"] = nullptr;
  }
  responder_->Send(http::EventOf(Dump(chunk)));
}

void Completion::SendChunk(Answer* answer) {
  if (!std::exchange(streams_, true)) responder_->BeginStream();
  if (!std::exchange(answer->has_begun, true) && terms_.route == kChat) SendRole(*answer);
  SendEvent(
      OrderedJson::array({ChunkChoice(answer->choice, terms_.route, WantsLogprobs(), *model_)}),
      terms_.fields.continuous_usage_stats);
  answer->choice.text.clear();
  answer->choice.tokens.clear();
}

// OpenAI's chunks of a chat begin with the role, in a chunk of its own.
void Completion::SendRole(const Answer& answer) {
  OrderedJson choice = {{"index", answer.choice.index},
                        {"delta", {{"role", "assistant"}, {"content", ""}}},
                        {"logprobs", nullptr},
                        {"finish_reason", nullptr}};
  SendEvent(OrderedJson::array({std::move(choice)}), terms_.fields.continuous_usage_stats);
}

// The status of a stream that has begun is sent, so its error is an event. A generator takes a
// Cancel from within its own call: it acts on it when the call has returned.
void Completion::Fail(const Error& error) {
  answered_ = true;
  CancelOpenRequests();
  metrics_->attainment.CountMiss();
  if (!streams_) return responder_->Reply(AnswerOf(error));
  responder_->Send(http::EventOf(JsonOf(error)));
  responder_->Send(http::EventOf("[DONE]"));
  responder_->End();
}

void Completion::FinishIfWhole() {
  const bool whole = std::all_of(answers_.begin(), answers_.end(),
                                 [](const Answer& answer) { return answer.has_ended; });
  if (answered_ || starting_ || !whole) return;
  answered_ = true;
  metrics_->whole->Observe(static_cast<double>(terms_.now_us() - began_us_) * 1e-6);
  if (terms_.fields.stream) {
    if (terms_.fields.include_usage) SendEvent(OrderedJson::array(), true);
    responder_->Send(http::EventOf("[DONE]"));
    return responder_->End();
  }
  OrderedJson json = Head();
  json["choices"] = OrderedJson::array();
  for (const Answer& answer : answers_)
    json["choices"].push_back(WholeChoice(answer.choice, terms_.route, WantsLogprobs(), *model_));
  json["usage"] = UsageJson(usage_);
  responder_->Reply({200, Dump(json)});
}

// The owner lets go of the completion, so nothing here may be touched after the call.
void Completion::EndIfIdle() {
  const bool idle = std::all_of(
      submissions_.begin(), submissions_.end(),
      [](const std::unique_ptr<Submission>& submission) { return submission->open == 0; });
  if (!idle || starting_ || !answered_ || std::exchange(ended_, true)) return;
  terms_.ended();
}

}  // namespace serve::openai
