#include "scheduler/batching/iteration/orca.h"

namespace scheduler::batching::iteration {

// Line numbers are those of Algorithm 2. n_rsrv is what tables reference, n_slots is all blocks,
// and lines 1, 2 and 5 to 15 are IterationBatcher's. The requests in INCREMENT come before those in
// INITIATION here. Under kFcfs that is the order of arrival, since none begins before an earlier
// one.
void Orca::Select(State* state, Step* step) {
  const size_t max_bs = static_cast<size_t>(state->options.answers_max);
  for (Sequence* const request : state->requests.running()) {  // lines 20, 21
    if (request->in_flight.steps > 0) continue;                // line 19
    if (step->rows.size() == max_bs) return;                   // line 22
    AddRow(request, request->pending(), step);                 // line 27
  }
  while (Sequence* const request = state->requests.NextToBegin()) {
    if (step->rows.size() == max_bs) return;                     // line 22
    const int32_t max_tokens = BlocksToBegin(*state, *request);  // line 24, in blocks
    if (max_tokens > state->blocks.available()) return;          // line 25
    state->requests.Move(request, Phase::kRunning);
    TakeBlocks(state, request, request->tokens_max);  // line 26
    AddRow(request, request->pending(), step);        // line 27
  }
}

int32_t Orca::BlocksToBegin(const State&, const Sequence& sequence) const {
  return BlocksFor(sequence.tokens_max);
}

}  // namespace scheduler::batching::iteration
