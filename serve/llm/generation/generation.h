// The pure part of generating: requests become events of a batcher, its steps become plans for the
// engine, and the engine's answers become tokens for listeners. It knows no clock, socket or
// process; times and what the engine does are told.
//
// Each listener is told each token once, in order. When an engine is lost, the batcher computes the
// known tokens again, and the next token is the first one that nobody was told.
//
// Thread safety: one thread at a time. Listeners may call Submit and Cancel: what follows from that
// is done when the listener has returned.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "scheduler/batching/iteration/iteration_batcher.h"
#include "serve/history/history.h"
#include "serve/llm/engine/messages.h"
#include "serve/llm/generation/generator.h"
#include "serve/llm/generation/growing_answer.h"

namespace serve::llm {

struct GenerationOptions {
  std::string batching = "budget";  // one of iteration::ModeNames()
  // `tokens_max` is also the most rows of a plan, and `answers_max` the most requests of it.
  scheduler::batching::iteration::Options batcher;
  int32_t vocabulary = 0;
  std::vector<int32_t> end_tokens;  // the model's own marks of an end
};

class Generation {
 public:
  class Effects {
   public:
    virtual ~Effects() = default;
    // To be answered by OnAnswerUntrusted, or by OnEngineLost.
    virtual void SendPlan(const Plan& plan) = 0;
    // Call OnTimer at this time; replaces the time before. kNever: do not.
    virtual void SetTimer(int64_t at_us) = 0;
  };

  // REQUIRES: `options.batching` is known; `effects` outlives the generation.
  Generation(const GenerationOptions& options, Effects* effects);

  // REQUIRES, of all: `now_us` never falls.
  RequestId Submit(GenerationRequest request, GenerationListener* listener, int64_t now_us);
  void Cancel(RequestId request, int64_t now_us);
  void OnEngineStarted(int64_t now_us) { history_.OnEngineStarted(now_us); }
  void OnEngineReady(int32_t blocks, int64_t now_us);
  void OnEngineLost(const std::string& why, int64_t now_us);
  void OnTimer(int64_t now_us);
  // Fails where the engine answers something else than the next plan's tokens: it can't be
  // believed any more.
  absl::Status OnAnswerUntrusted(const Answer& answer, int64_t now_us);

  bool empty() const { return requests_.empty(); }
  // For metrics.
  const scheduler::batching::iteration::State& state() const { return batcher_->state(); }
  const scheduler::batching::iteration::IterationBatcher& batcher() const { return *batcher_; }
  const history::History& history() const { return history_; }

 private:
  using Event = scheduler::batching::iteration::Event;
  using Step = scheduler::batching::iteration::Step;
  using Sampled = scheduler::batching::iteration::Sampled;

  struct Request {
    GenerationRequest asked;
    GenerationListener* listener = nullptr;               // null: cancelled
    std::vector<std::unique_ptr<GrowingAnswer>> answers;  // null: has ended
    int32_t open = 0;                                     // answers that have not ended
    int64_t arrived_us = 0;
    bool has_begun = false;  // a step had a row of it
  };
  struct Draw {
    RequestId request = 0;
    int32_t answer = 0;
    bool logprobs = false;  // wanted
  };
  // A plan of a step that the engine has not answered whole.
  struct Flight {
    uint64_t plan = 0;
    uint64_t step = 0;
    bool ends_step = false;  // the last plan of its step
    std::vector<Draw> draws;
    StepResult result;
    uint64_t step_us = 0;
  };

  void Handle(Event event, int64_t now_us);
  void HandleEvents();
  void Perform(const Step& step);
  void Perform(const scheduler::batching::iteration::Finished& finished);
  void Perform(const scheduler::batching::Rejected& rejected);
  void Perform(const scheduler::batching::iteration::Preempted& preempted) {
    history_.OnPreempted(preempted, now_us_);
  }
  void Perform(const scheduler::batching::SetTimer& timer) { effects_.SetTimer(timer.at_us); }
  void MakeAnswers(Request* request);
  BatchRequest PlanRow(const scheduler::batching::iteration::Row& row);
  void TellBeginnings(const Step& step);
  Sampled Tell(const Draw& draw, const StepResult& result, size_t at);
  void EndStep(int64_t now_us);
  GrowingAnswer* FindAnswer(const Draw& draw);

  const GenerationOptions options_;
  Effects& effects_;
  std::unique_ptr<scheduler::batching::iteration::IterationBatcher> batcher_;
  std::unordered_map<RequestId, std::unique_ptr<Request>> requests_;
  RequestId last_request_ = 0;
  uint64_t last_plan_ = 0;
  std::deque<Flight> flights_;    // not answered
  std::vector<Flight> answered_;  // of a step that is not answered whole
  std::deque<Event> events_;      // that wait for a listener to return
  history::History history_;
  bool busy_ = false;
  int64_t now_us_ = 0;
};

}  // namespace serve::llm
