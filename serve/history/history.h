// Collects the records of one model. Pure: the generator tells what happens and when, and each call
// costs no more than a look-up for each row of a step. What is old makes room (records.h).
//
// Thread safety: one thread at a time. REQUIRES, of all calls: `now_us` never falls.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "scheduler/batching/iteration/event.h"
#include "serve/history/records.h"

namespace serve::history {

class History {
 public:
  // A request has come, before the batcher has seen the request. The record has its number, id,
  // class, answers and prompt.
  void OnArrived(RequestRecord request, int64_t now_us);
  void OnRejected(uint64_t request, scheduler::batching::Refusal why, int64_t now_us);
  void OnPreempted(const scheduler::batching::iteration::Preempted& answer, int64_t now_us);
  // `blocks`: in use.
  void OnStepBegan(const scheduler::batching::iteration::Step& step, int32_t blocks,
                   int64_t now_us);
  // A token of an answer, which is told its client now.
  void OnToken(uint64_t request, int64_t now_us);
  // Its tokens have been told. `computed_us_untrusted`: the engine's word.
  void OnStepEnded(uint64_t step, uint64_t computed_us_untrusted, int64_t now_us);
  void OnAnswerEnded(const scheduler::batching::iteration::Finished& answer, int64_t now_us);
  // After each event, whatever has changed.
  void OnLoad(const LoadRecord& load);

  void OnEngineStarted(int64_t now_us);
  // Also of an engine whose predecessor's loss was not told.
  void OnEngineReady(int32_t blocks, int64_t now_us);
  void OnEngineLost(const std::string& why, int64_t now_us);

  // All of it, with kOpenToldMax requests that go on.
  Records Tell() const;

 private:
  struct Open {
    RequestRecord record;
    int32_t answers = 0;  // that have not ended
  };

  void NoteRow(const scheduler::batching::iteration::Row& row, StepRecord* step);
  bool IsEngineOpen() const;
  void LoseSteps(int64_t now_us);
  void PauseRunning(int64_t now_us);

  Records records_;  // without open requests
  std::map<uint64_t, Open> open_;
  int32_t preemptions_ = 0;  // since the last step began
};

}  // namespace serve::history
