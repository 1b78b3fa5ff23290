#include "scheduler/batching/iteration/why.h"

#include <iterator>
#include <vector>

namespace scheduler::batching::iteration {
namespace {

int64_t WaitingBefore(const Requests& requests, const Sequence* sequence) {
  const Requests::Ordered& waiting = requests.waiting();
  return std::distance(waiting.begin(), waiting.find(const_cast<Sequence*>(sequence)));
}

// Of a sequence that waits. The order of the questions is that in which modes ask.
Standing StandingOf(const IterationBatcher& batcher, const Sequence& sequence, Why* why) {
  const State& state = batcher.state();
  if (!batcher.engine_ready()) return Standing::kNoEngine;
  const Sequence* const suspect = state.requests.FirstSuspect();
  const bool alone = state.requests.running().empty();
  if (suspect == &sequence && !alone) return Standing::kAlone;
  if (suspect != nullptr && suspect != &sequence) return Standing::kBehindAlone;
  why->ahead = suspect == nullptr ? WaitingBefore(state.requests, &sequence) : 0;
  if (why->ahead > 0) return Standing::kBehind;
  if (batcher.mode().AnswersTogether() && !alone) return Standing::kBatch;
  if (state.requests.running_answers() + sequence.copies > state.options.answers_max)
    return Standing::kAnswers;
  why->blocks = batcher.mode().BlocksToBegin(state, sequence);
  why->available = state.blocks.available();
  return why->blocks > why->available ? Standing::kBlocks : Standing::kWaitsForStep;
}

}  // namespace

std::optional<Why> WhyOf(const IterationBatcher& batcher, RequestId request) {
  const std::vector<Sequence*> sequences = batcher.state().requests.Of(request);
  if (sequences.empty()) return std::nullopt;
  const Sequence& first = *sequences.front();
  Why why;
  why.prompt = first.prompt;
  why.computed = first.computed;
  why.generated = first.size() - first.prompt;
  why.generated_max = first.tokens_max - first.prompt;
  if (first.phase == Phase::kLeaving) {
    why.standing = Standing::kLeaving;
  } else if (first.phase == Phase::kRunning) {
    why.standing = first.in_flight.steps > 0 ? Standing::kComputes : Standing::kWaitsForStep;
  } else {
    why.standing = StandingOf(batcher, first, &why);
  }
  return why;
}

}  // namespace scheduler::batching::iteration
