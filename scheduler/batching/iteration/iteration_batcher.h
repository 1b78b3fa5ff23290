// The batcher of generative models: the request pool, memory, deadlines, steps in flight and lost
// engines. A Mode chooses the rows of each step; everything else is alike under all modes.
//
// Every accepted request ends: the first key is never preempted, a request that can never fit is
// refused, and a request with which engines die again and again is ended. Orca, section 4.3.2, is
// the mode `orca`; docs/serving.md compares the modes. Thread safety: one thread at a time.
#pragma once

#include <memory>
#include <vector>

#include "scheduler/batching/batcher.h"
#include "scheduler/batching/iteration/event.h"
#include "scheduler/batching/iteration/retry_after.h"
#include "scheduler/batching/iteration/state.h"

namespace scheduler::batching::iteration {

class IterationBatcher : public Batcher<Event, Action> {
 public:
  IterationBatcher(const Options& options, std::unique_ptr<Mode> mode);

  // At each event: what it means, then deadlines that have passed, then as many steps as may be in
  // flight and have rows.
  void OnEvent(const Event& event, int64_t now_us, std::vector<Action>* actions) override;

  const State& state() const { return state_; }
  const Mode& mode() const { return *mode_; }
  bool engine_ready() const { return engine_ready_; }

 private:
  struct FlightRow {
    Sequence* sequence = nullptr;
    int32_t count = 0;
    int32_t samples = 0;
  };
  struct Flight {
    StepNumber number = 0;
    int64_t begun_us = 0;
    std::vector<FlightRow> rows;
  };

  void On(const Arrived& event);
  void On(const Cancelled& event);
  void On(const StepDone& event);
  void On(const EngineReady& event);
  void On(const EngineLost& event);
  void On(const Timer& event) {}  // deadlines are looked at after each event

  // What a request may have at most in all; at most its size: it can never have an answer.
  int32_t TokensMax(int32_t size, int32_t new_max) const;
  void Reject(const Arrived& event, Refusal why);
  // The tokens of [first, first + samples) are the next of the row's sequence and its copies.
  void Return(const FlightRow& row, const Sampled* sampled);
  void BeginCopies(Sequence* sequence, const Sampled* sampled);
  void Append(Sequence* sequence, const Sampled& sampled);
  void Publish(Sequence* sequence);
  void EndBatchIfDone();
  // Tells that each answer of the sequence has ended, and lets go of it as soon as no step has it.
  void End(Sequence* sequence, Ending why);
  void Forget(Sequence* sequence);  // which has ended and is in no step any more
  void ExpireDue();
  void BeginSteps();
  void KeepTimer();

  State state_;
  std::unique_ptr<Mode> mode_;
  RetryAfter retry_after_;
  std::vector<Flight> flights_;
  bool engine_ready_ = false;
  StepNumber last_step_ = 0;
  int64_t last_done_us_ = 0;
  int64_t timer_us_ = kNever;
  // Of the event that is being dealt with.
  int64_t now_us_ = 0;
  std::vector<Action>* actions_ = nullptr;
};

}  // namespace scheduler::batching::iteration
