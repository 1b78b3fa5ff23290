#include "serve/history/history.h"

#include <algorithm>
#include <utility>

namespace serve::history {
namespace {

using scheduler::batching::Refusal;
using scheduler::batching::iteration::Ending;
using scheduler::batching::iteration::Row;

template <typename Record>
void Keep(Record record, size_t most, std::deque<Record>* records) {
  records->push_back(std::move(record));
  if (records->size() > most) records->pop_front();
}

Outcome OutcomeOf(Ending why) {
  switch (why) {
    case Ending::kStopped:
      return Outcome::kStopped;
    case Ending::kLength:
      return Outcome::kLength;
    case Ending::kCancelled:
      return Outcome::kCancelled;
    case Ending::kExpired:
      return Outcome::kExpired;
    case Ending::kEngineFault:
      return Outcome::kEngineFault;
    case Ending::kTooLong:
      return Outcome::kTooLongForEngine;
  }
  return Outcome::kOpen;
}

Outcome OutcomeOf(Refusal why) {
  switch (why) {
    case Refusal::kEmpty:
      return Outcome::kRefusedEmpty;
    case Refusal::kTooLong:
      return Outcome::kRefusedTooLong;
    case Refusal::kTooManyCopies:
      return Outcome::kRefusedTooManyAnswers;
    case Refusal::kQueueFull:
      return Outcome::kRefusedQueueFull;
  }
  return Outcome::kOpen;
}

// How many pauses of the request have not ended.
int32_t OpenPauses(const RequestRecord& request) {
  return static_cast<int32_t>(
      std::count_if(request.pauses.begin(), request.pauses.end(),
                    [](const PauseRecord& pause) { return pause.end_us == 0; }));
}

void EndPauses(int32_t answer, int64_t now_us, RequestRecord* request) {
  for (PauseRecord& pause : request->pauses) {
    if (pause.end_us == 0 && pause.answer == answer) pause.end_us = now_us;
  }
}

}  // namespace

void History::OnArrived(RequestRecord request, int64_t now_us) {
  request.arrived_us = now_us;
  const uint64_t number = request.number;
  const int32_t answers = request.answers;
  open_[number] = {std::move(request), answers};
}

void History::OnRejected(uint64_t request, Refusal why, int64_t now_us) {
  const std::map<uint64_t, Open>::iterator found = open_.find(request);
  if (found == open_.end()) return;
  found->second.record.ended_us = now_us;
  found->second.record.outcome = OutcomeOf(why);
  Keep(std::move(found->second.record), kRefusedMax, &records_.refused);
  open_.erase(found);
}

void History::OnPreempted(const scheduler::batching::iteration::Preempted& answer, int64_t now_us) {
  ++preemptions_;
  const std::map<uint64_t, Open>::iterator found = open_.find(answer.request);
  if (found == open_.end()) return;
  RequestRecord& request = found->second.record;
  ++request.preemptions;
  Keep(PauseRecord{now_us, 0, false, answer.copy}, kPausesMax, &request.pauses);
}

// --- steps ---------------------------------------------------------------------------------------

// Preemptions are told before the step for which they made room.
void History::OnStepBegan(const scheduler::batching::iteration::Step& step, int32_t blocks,
                          int64_t now_us) {
  StepRecord record;
  record.number = step.number;
  record.begin_us = now_us;
  record.answers = static_cast<int32_t>(step.rows.size());
  record.blocks = blocks;
  record.preemptions = std::exchange(preemptions_, 0);
  for (const Row& row : step.rows) NoteRow(row, &record);
  Keep(record, kStepsMax, &records_.steps);
}

// A single token of an answer that has tokens continues it. Whatever else is computed is the
// prompt, or an answer's tokens that were given up: both come in chunks.
void History::NoteRow(const Row& row, StepRecord* step) {
  const std::map<uint64_t, Open>::iterator found = open_.find(row.request);
  if (found == open_.end()) return;
  RequestRecord& request = found->second.record;
  const bool decodes = row.count == 1 && request.first_token_us != 0;
  (decodes ? step->decode_tokens : step->prompt_tokens) += row.count;
  if (request.begun_us == 0) {
    request.begun_us = step->begin_us;
    request.cached_tokens = row.first;
  }
  EndPauses(row.copy, step->begin_us, &request);
  EndPauses(PauseRecord::kAllAnswers, step->begin_us, &request);
}

void History::OnToken(uint64_t request, int64_t now_us) {
  const std::map<uint64_t, Open>::iterator found = open_.find(request);
  if (found == open_.end()) return;
  RequestRecord& record = found->second.record;
  ++record.generated_tokens;
  if (record.first_token_us == 0) record.first_token_us = now_us;
}

// Steps in flight are the last ones. An engine can't have computed for longer than the front
// waited.
void History::OnStepEnded(uint64_t step, uint64_t computed_us_untrusted, int64_t now_us) {
  for (auto record = records_.steps.rbegin(); record != records_.steps.rend(); ++record) {
    if (record->number > step) continue;
    if (record->number < step || record->end_us != 0) return;
    record->end_us = now_us;
    const uint64_t most_us = static_cast<uint64_t>(now_us - record->begin_us);
    record->computed_us = static_cast<int64_t>(std::min(computed_us_untrusted, most_us));
    return;
  }
}

// The request has ended with the last of its answers.
void History::OnAnswerEnded(const scheduler::batching::iteration::Finished& answer,
                            int64_t now_us) {
  const std::map<uint64_t, Open>::iterator found = open_.find(answer.request);
  if (found == open_.end()) return;
  RequestRecord& request = found->second.record;
  EndPauses(answer.copy, now_us, &request);
  if (--found->second.answers > 0) return;
  request.ended_us = now_us;
  request.outcome = OutcomeOf(answer.why);
  EndPauses(PauseRecord::kAllAnswers, now_us, &request);
  Keep(std::move(request), kRequestsMax, &records_.requests);
  open_.erase(found);
}

// Several changes at one time are one.
void History::OnLoad(const LoadRecord& load) {
  if (!records_.loads.empty()) {
    LoadRecord& last = records_.loads.back();
    if (last.at_us == load.at_us) {
      last = load;
      return;
    }
    LoadRecord same = load;
    same.at_us = last.at_us;
    if (same == last) return;
  }
  Keep(load, kLoadsMax, &records_.loads);
}

// --- engines -------------------------------------------------------------------------------------

bool History::IsEngineOpen() const {
  return !records_.engines.empty() && records_.engines.back().lost_us == 0;
}

void History::OnEngineStarted(int64_t now_us) {
  EngineRecord engine;
  engine.started_us = now_us;
  Keep(std::move(engine), kEnginesMax, &records_.engines);
}

void History::OnEngineReady(int32_t blocks, int64_t now_us) {
  LoseSteps(now_us);
  PauseRunning(now_us);
  if (IsEngineOpen() && records_.engines.back().ready_us != 0)
    records_.engines.back().lost_us = now_us;
  if (!IsEngineOpen()) OnEngineStarted(now_us);
  records_.engines.back().ready_us = now_us;
  records_.engines.back().blocks = blocks;
}

// Without an engine that has started: it could not be started.
void History::OnEngineLost(const std::string& why, int64_t now_us) {
  LoseSteps(now_us);
  PauseRunning(now_us);
  if (!IsEngineOpen()) OnEngineStarted(now_us);
  records_.engines.back().lost_us = now_us;
  records_.engines.back().why = why;
}

void History::LoseSteps(int64_t now_us) {
  for (auto record = records_.steps.rbegin(); record != records_.steps.rend(); ++record) {
    if (record->end_us != 0) return;
    record->end_us = now_us;
    record->lost = true;
  }
}

// Before its first token a request is one sequence, however many answers it has.
void History::PauseRunning(int64_t now_us) {
  for (auto& [number, open] : open_) {
    RequestRecord& request = open.record;
    const int32_t sequences = request.first_token_us == 0 ? 1 : open.answers;
    if (request.begun_us == 0 || OpenPauses(request) >= sequences) continue;
    const bool is_paused =
        std::any_of(request.pauses.begin(), request.pauses.end(), [](const PauseRecord& pause) {
          return pause.end_us == 0 && pause.answer == PauseRecord::kAllAnswers;
        });
    if (is_paused) continue;
    ++request.recomputations;
    Keep(PauseRecord{now_us, 0, true, PauseRecord::kAllAnswers}, kPausesMax, &request.pauses);
  }
}

// Numbers of requests ascend, so that the map begins with the oldest request.
Records History::Tell() const {
  Records told = records_;
  size_t left = kOpenToldMax;
  for (const auto& [number, open] : open_) {
    if (left-- == 0) break;
    told.requests.push_back(open.record);
  }
  return told;
}

}  // namespace serve::history
