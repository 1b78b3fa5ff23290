#include "scheduler/batching/iteration/iteration_batcher.h"

#include <algorithm>
#include <cassert>
#include <span>
#include <utility>
#include <variant>

namespace scheduler::batching::iteration {

IterationBatcher::IterationBatcher(const Options& options, std::unique_ptr<Mode> mode)
    : state_(options), mode_(std::move(mode)) {
  assert(options.answers_max > 0 && options.tokens_max >= options.answers_max);
  assert(options.steps_in_flight_max > 0);
  assert(!options.ahead || options.steps_in_flight_max == 2);
}

void IterationBatcher::OnEvent(const Event& event, int64_t now_us, std::vector<Action>* actions) {
  assert(now_us >= now_us_);
  now_us_ = now_us;
  actions_ = actions;
  std::visit([this](const auto& each) { On(each); }, event);
  ExpireDue();
  BeginSteps();
  KeepTimer();
  actions_ = nullptr;
}

// A request within this bound fits an empty engine, so it ends one day. The last token of an answer
// needs no memory; counting it keeps the rule the same for all modes.
int32_t IterationBatcher::TokensMax(int32_t size, int32_t new_max) const {
  int64_t most = std::min<int64_t>(int64_t{size} + new_max, state_.options.context_max);
  // Before the first engine, its memory is not known: requests that don't fit are ended then.
  if (state_.blocks.total() > 0) {
    most = std::min<int64_t>(most, int64_t{state_.blocks.total()} * kBlockTokens);
  }
  return static_cast<int32_t>(most);
}

void IterationBatcher::Reject(const Arrived& event, Refusal why) {
  const bool later = why == Refusal::kQueueFull;
  actions_->push_back(Rejected{event.request, why,
                               later ? retry_after_.Seconds(state_.requests.waiting_tokens()) : 0});
}

void IterationBatcher::On(const Arrived& event) {
  const Options& options = state_.options;
  if (event.tokens.empty() || event.new_max <= 0 || event.copies <= 0) {
    return Reject(event, Refusal::kEmpty);
  }
  if (event.tokens.size() >= static_cast<size_t>(options.context_max)) {
    return Reject(event, Refusal::kTooLong);
  }
  if (event.copies > options.answers_max) return Reject(event, Refusal::kTooManyCopies);
  const int32_t size = static_cast<int32_t>(event.tokens.size());
  const int32_t most = TokensMax(size, event.new_max);
  if (most <= size) return Reject(event, Refusal::kTooLong);
  const int64_t work = size + int64_t{most - size} * event.copies;
  if (static_cast<int32_t>(state_.requests.waiting().size()) >= options.queue_requests_max ||
      state_.requests.waiting_tokens() + work > options.queue_tokens_max) {
    return Reject(event, Refusal::kQueueFull);
  }
  const int32_t sequences = mode_->SharesPrompts() ? 1 : event.copies;
  for (int32_t copy = 0; copy < sequences; ++copy) {
    std::unique_ptr<Sequence> sequence = std::make_unique<Sequence>();
    sequence->key = {RankOf(options.order, event, now_us_, options.aging_us), event.request, copy};
    sequence->copies = event.copies / sequences;
    sequence->tokens = event.tokens;
    sequence->prompt = size;
    sequence->tokens_max = most;
    sequence->due_us = event.deadline_us > 0 ? now_us_ + event.deadline_us : kNever;
    sequence->salt = event.salt;
    sequence->in_flight.needs_drawn = event.needs_drawn;
    state_.requests.Add(std::move(sequence));
  }
}

void IterationBatcher::On(const Cancelled& event) {
  for (Sequence* const sequence : state_.requests.Of(event.request)) {
    if (sequence->phase != Phase::kLeaving) End(sequence, Ending::kCancelled);
  }
  EndBatchIfDone();
}

void IterationBatcher::On(const StepDone& event) {
  const std::vector<Flight>::iterator found =
      std::find_if(flights_.begin(), flights_.end(),
                   [&event](const Flight& flight) { return flight.number == event.step; });
  if (found == flights_.end()) return;
  const Flight flight = std::move(*found);
  flights_.erase(found);
  --state_.steps_in_flight;
  size_t samples = 0;
  int64_t tokens = 0;
  for (const FlightRow& row : flight.rows) {
    samples += static_cast<size_t>(row.samples);
    tokens += row.count;
  }
  assert(samples == event.sampled.size());
  retry_after_.OnStep(tokens, std::max(flight.begun_us, last_done_us_), now_us_);
  last_done_us_ = now_us_;
  state_.counters.computed_tokens += tokens;
  const Sampled* sampled = event.sampled.data();
  for (const FlightRow& row : flight.rows) {
    Return(row, sampled);
    sampled += row.samples;
  }
  EndBatchIfDone();
}

// A sequence that has ended while the step ran had kept its blocks for its steps alone. What a step
// ahead has drawn for it is not told.
void IterationBatcher::Return(const FlightRow& row, const Sampled* sampled) {
  Sequence* const sequence = row.sequence;
  --sequence->in_flight.steps;
  if (row.samples > 0) --sequence->in_flight.drawing;
  if (sequence->phase == Phase::kLeaving) {
    if (sequence->in_flight.steps == 0) Forget(sequence);
    return;
  }
  sequence->computed += row.count;
  Publish(sequence);
  if (row.samples > 1) BeginCopies(sequence, sampled);
  if (row.samples > 0) Append(sequence, sampled[0]);
}

// When another sequence has computed the same block, this sequence keeps its own block. Later
// blocks are then known by the content of the other block.
void IterationBatcher::Publish(Sequence* sequence) {
  if (!mode_->SharesPrompts() || !state_.options.prefix_cache) return;
  CachedPrefix* const known = &sequence->published;
  while ((known->blocks + 1) * kBlockTokens <= sequence->computed) {
    const size_t at = static_cast<size_t>(known->blocks);
    state_.blocks.Publish(sequence->blocks[at],
                          std::span(sequence->tokens).subspan(at * kBlockTokens, kBlockTokens),
                          sequence->salt, known);
  }
}

// Each copy of the answer has the prompt's blocks. The last block is shared though it is not full,
// and a copy that is about to write there takes a block of its own.
void IterationBatcher::BeginCopies(Sequence* sequence, const Sampled* sampled) {
  const int32_t copies = sequence->copies;
  state_.requests.Divide(sequence);
  for (int32_t copy = 1; copy < copies; ++copy) {
    std::unique_ptr<Sequence> sibling = std::make_unique<Sequence>(*sequence);
    sibling->key.copy += copy;
    sibling->told = 0;
    for (const BlockId block : sibling->blocks) state_.blocks.Reference(block);
    Append(state_.requests.Add(std::move(sibling)), sampled[copy]);
  }
}

void IterationBatcher::Append(Sequence* sequence, const Sampled& sampled) {
  sequence->tokens.push_back(sampled.token);
  const bool full = sequence->size() >= sequence->tokens_max;
  if (!sampled.stops && !full) return;
  const Ending why = sampled.stops ? Ending::kStopped : Ending::kLength;
  if (!mode_->AnswersTogether()) return End(sequence, why);
  sequence->ended = why;
}

// The running sequences are the batch: under such a mode none begins while another runs.
void IterationBatcher::EndBatchIfDone() {
  if (!mode_->AnswersTogether()) return;
  const std::vector<Sequence*> batch(state_.requests.running().begin(),
                                     state_.requests.running().end());
  const bool done = std::all_of(batch.begin(), batch.end(),
                                [](const Sequence* each) { return each->ended.has_value(); });
  for (Sequence* const sequence : batch) {
    if (done) End(sequence, *sequence->ended);
  }
}

// The client is told at once. Blocks that a step in flight uses stay until the step is done.
void IterationBatcher::End(Sequence* sequence, Ending why) {
  for (int32_t copy = 0; copy < sequence->copies; ++copy) {
    actions_->push_back(Finished{sequence->request(), sequence->key.copy + copy, why});
  }
  if (sequence->in_flight.steps > 0) return state_.requests.Move(sequence, Phase::kLeaving);
  Forget(sequence);
}

void IterationBatcher::Forget(Sequence* sequence) {
  GiveBlocksBack(&state_, sequence);
  state_.requests.Erase(sequence);
}

// An engine may come without a loss of the one before having been told. It may have less memory.
void IterationBatcher::On(const EngineReady& event) {
  assert(event.blocks > 0);
  On(EngineLost());
  state_.blocks.Reset(event.blocks);
  engine_ready_ = true;
  for (Sequence* const sequence : state_.requests.All()) {
    const int32_t most = std::min(sequence->tokens_max, event.blocks * kBlockTokens);
    if (most > sequence->size()) {
      state_.requests.Clip(sequence, most);
    } else {
      End(sequence, sequence->size() > sequence->prompt ? Ending::kLength : Ending::kTooLong);
    }
  }
}

// All sequences begin again at their first token. Those that were in a step are suspected, since
// nothing says which of them the engine died of.
void IterationBatcher::On(const EngineLost&) {
  for (const Flight& flight : flights_) {
    for (const FlightRow& row : flight.rows) {
      if (std::exchange(row.sequence->in_flight.steps, 0) == 0)
        continue;  // was in the step before, too
      state_.requests.CountDeath(row.sequence);
    }
  }
  flights_.clear();
  state_.steps_in_flight = 0;
  engine_ready_ = false;
  for (Sequence* const sequence : state_.requests.All()) {
    const bool fatal = sequence->deaths > kSuspectDeaths;
    if (sequence->phase == Phase::kLeaving) {
      Forget(sequence);
    } else if (sequence->ended) {
      End(sequence, *sequence->ended);
    } else if (fatal) {
      End(sequence, Ending::kEngineFault);
    } else if (sequence->phase == Phase::kRunning) {
      state_.counters.recomputed_tokens += sequence->computed;
      GiveBlocksBack(&state_, sequence);
      state_.requests.Move(sequence, Phase::kWaiting);
    }
  }
  state_.blocks.Reset(state_.blocks.total());
}

void IterationBatcher::ExpireDue() {
  bool any = false;
  for (Sequence* due = state_.requests.FirstDue(); due != nullptr && due->due_us <= now_us_;
       due = state_.requests.FirstDue()) {
    any = true;
    End(due, Ending::kExpired);
  }
  if (any) EndBatchIfDone();
}

// Orca's line 9: the mode is asked again until the engine has as many steps as it has stages.
void IterationBatcher::BeginSteps() {
  while (engine_ready_ && state_.steps_in_flight < state_.options.steps_in_flight_max) {
    Step step;
    mode_->Select(&state_, &step);
    // Also where no row is left: all that runs may have been preempted, but for steps in flight.
    for (const Preempted& preempted : std::exchange(state_.preempted, {}))
      actions_->push_back(preempted);
    if (step.rows.empty()) return;
    step.number = ++last_step_;
    Flight flight = {step.number, now_us_, {}};
    flight.rows.reserve(step.rows.size());
    for (const Row& row : step.rows) {
      flight.rows.push_back({state_.requests.Find(row.request, row.copy), row.count, row.samples});
    }
    flights_.push_back(std::move(flight));
    ++state_.steps_in_flight;
    ++state_.counters.steps;
    actions_->push_back(std::move(step));
  }
}

// A timer that is told again and again would cost a server a system call for each event.
void IterationBatcher::KeepTimer() {
  const Sequence* const due = state_.requests.FirstDue();
  const int64_t wanted_us = due == nullptr ? kNever : due->due_us;
  if (wanted_us == timer_us_) return;
  timer_us_ = wanted_us;
  actions_->push_back(SetTimer{wanted_us});
}

}  // namespace scheduler::batching::iteration
