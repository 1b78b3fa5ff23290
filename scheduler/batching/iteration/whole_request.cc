#include "scheduler/batching/iteration/whole_request.h"

#include <algorithm>
#include <vector>

namespace scheduler::batching::iteration {

void WholeRequest::BeginBatch(State* state, Step* step) {
  std::vector<Sequence*> batch;
  while (static_cast<int32_t>(batch.size()) < state->options.answers_max) {
    Sequence* const next = state->requests.NextToBegin();
    if (next == nullptr || BlocksToBegin(*state, *next) > state->blocks.available()) break;
    state->requests.Move(next, Phase::kRunning);
    TakeBlocks(state, next, next->tokens_max);
    batch.push_back(next);
  }
  if (batch.empty()) return;
  members_ = static_cast<int32_t>(batch.size());
  int32_t shortest = batch[0]->size();
  int32_t longest = 0;
  for (const Sequence* const each : batch) {
    shortest = std::min(shortest, each->size());
    longest = std::max(longest, each->size());
  }
  for (Sequence* const each : batch) {
    const bool whole = first_step_ == FirstStep::kLongestPrompt;
    AddRow(each, whole ? each->size() : shortest, step);
    if (whole) step->padding += longest - each->size();
  }
}

int32_t WholeRequest::BlocksToBegin(const State&, const Sequence& sequence) const {
  return BlocksFor(sequence.tokens_max);
}

// A member that was cancelled leaves its place in the batch empty, like a member that has ended.
void WholeRequest::Select(State* state, Step* step) {
  if (state->steps_in_flight > 0) return;
  if (state->requests.running().empty()) return BeginBatch(state, step);
  for (Sequence* const each : state->requests.running()) {
    if (!each->ended) AddRow(each, 1, step);
  }
  step->padding = members_ - static_cast<int32_t>(step->rows.size());
}

}  // namespace scheduler::batching::iteration
