// One body's answers while they are generated: as one JSON answer, or as a stream of chunks.
//
// Nothing is sent before the first token, so that a request that is refused late still gets the
// status of its refusal. A stream has one chunk a token, whether the token completes text or not.
//
// One answer that is refused or fails ends the whole body: the client reads nothing after the
// error, so the generator's other requests of the body are cancelled with it.
//
// Thread safety: the front's event loop. Ownership: shared, since a generator may end the request
// from within a call of the completion.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "serve/http/responder.h"
#include "serve/metrics/latency_goals.h"
#include "serve/metrics/registry.h"
#include "serve/openai/choice_json.h"
#include "serve/openai/prepare.h"

namespace serve::openai {

// Series of one model, by vLLM's names.
struct CompletionMetrics {
  CompletionMetrics(metrics::Registry* registry, const std::string& model,
                    metrics::LatencyGoals goals);
  metrics::Counter* prompt_tokens;
  metrics::Counter* generation_tokens;
  metrics::Counter* succeeded_stop;
  metrics::Counter* succeeded_length;
  metrics::Counter* rejections;
  metrics::Histogram* queue_time;
  metrics::Histogram* first_token;
  metrics::Histogram* inter_token;
  metrics::Histogram* whole;
  metrics::Attainment attainment;
};

struct CompletionTerms {
  Fields fields;
  Route route = kCompletions;
  std::string id;
  int64_t created = 0;
  std::function<int64_t()> now_us;
  std::function<void()> ended;  // the completion calls nothing and nobody any more
};

class Completion : public std::enable_shared_from_this<Completion> {
 public:
  Completion(CompletionTerms terms, ServedModel* model, CompletionMetrics* metrics,
             std::shared_ptr<http::Responder> responder);
  ~Completion();
  void Start(Prepared prepared);
  // The client has gone. REQUIRES: not called from within a call of the generator.
  void Cancel();

  const std::string& id() const { return terms_.id; }
  const ServedModel& model() const { return *model_; }
  int64_t began_us() const { return began_us_; }
  // The generator's requests that have not ended, in the order of the prompts.
  std::vector<llm::RequestId> OpenRequests() const;

 private:
  struct Submission;
  struct Answer {
    ChoiceText choice;  // whole, or of the next chunk
    std::unique_ptr<AnswerText> text;
    size_t characters = 0;
    int64_t tokens = 0;
    int64_t first_us = 0;
    int64_t last_us = 0;
    bool has_begun = false;
    bool has_ended = false;
  };

  void OnBegan(const llm::Beginning& beginning);
  bool OnToken(const Submission& submission, const llm::GeneratedToken& token);
  void OnAnswerEnded(Submission* submission, int32_t answer, llm::Ending why);
  void OnRejected(Submission* submission, const Error& error);
  void AnswerWithoutTokens(const Submission& submission);
  void AddText(Answer* answer, std::string_view text);
  void SendChunk(Answer* answer);
  void SendRole(const Answer& answer);
  void SendEvent(OrderedJson choices, bool with_usage);
  void Fail(const Error& error);
  void CancelOpenRequests();
  void FinishIfWhole();
  void EndIfIdle();
  OrderedJson Head() const;
  bool WantsLogprobs() const;

  const CompletionTerms terms_;
  ServedModel* const model_;
  CompletionMetrics* const metrics_;
  const std::shared_ptr<http::Responder> responder_;
  const int64_t began_us_;
  std::vector<std::unique_ptr<Submission>> submissions_;
  std::vector<Answer> answers_;
  Usage usage_;
  bool streams_ = false;  // the stream has begun
  bool answered_ = false;
  bool starting_ = false;
  bool ended_ = false;
};

}  // namespace serve::openai
