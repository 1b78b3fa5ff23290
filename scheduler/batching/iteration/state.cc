#include "scheduler/batching/iteration/state.h"

#include <cassert>
#include <utility>
#include <vector>

namespace scheduler::batching::iteration {

bool MayCompute(const State& state, const Sequence& sequence) {
  if (sequence.in_flight.steps == 0) return true;
  if (!state.options.ahead || sequence.in_flight.steps > 1) return false;
  if (sequence.in_flight.drawing == 0) return true;  // a part of the prompt
  // Where the token that is being drawn is the last one, nothing follows it.
  return sequence.copies == 1 && !sequence.in_flight.needs_drawn &&
         sequence.size() + sequence.in_flight.drawing < sequence.tokens_max;
}

void AddRow(Sequence* sequence, int32_t count, Step* step) {
  assert(sequence->phase == Phase::kRunning && !sequence->ended);
  assert(count > 0 && count <= sequence->pending());
  assert(BlocksFor(sequence->in_flight.planned + count) <=
         static_cast<int32_t>(sequence->blocks.size()));
  Row row;
  row.request = sequence->request();
  row.copy = sequence->key.copy;
  row.first = sequence->in_flight.planned;
  row.count = count;
  row.samples = count == sequence->pending() ? sequence->copies : 0;
  if (sequence->in_flight.planned == sequence->size()) row.follows = sequence->in_flight.drawn_at;
  row.table_first = sequence->told;
  row.blocks.assign(sequence->blocks.begin() + sequence->told, sequence->blocks.end());
  sequence->told = static_cast<int32_t>(sequence->blocks.size());
  ++sequence->in_flight.steps;
  sequence->in_flight.planned += count;
  sequence->in_flight.drawing += row.samples > 0 ? 1 : 0;
  sequence->in_flight.drawn_at = row.samples > 0 ? step->samples : -1;
  step->samples += row.samples;
  step->rows.push_back(std::move(row));
}

void TakeBlocks(State* state, Sequence* sequence, int32_t tokens) {
  while (static_cast<int32_t>(sequence->blocks.size()) < BlocksFor(tokens)) {
    sequence->blocks.push_back(state->blocks.Take());
  }
}

void GiveBlocksBack(State* state, Sequence* sequence) {
  assert(sequence->in_flight.steps == 0);
  while (!sequence->blocks.empty()) {
    state->blocks.Release(sequence->blocks.back());
    sequence->blocks.pop_back();
  }
  sequence->computed = 0;
  sequence->in_flight.planned = 0;
  sequence->in_flight.drawing = 0;
  sequence->in_flight.drawn_at = -1;
  sequence->told = 0;
  sequence->published = CachedPrefix();
}

void Preempt(State* state, Sequence* sequence) {
  ++state->counters.preemptions;
  state->counters.recomputed_tokens += sequence->computed;
  state->preempted.push_back({sequence->request(), sequence->key.copy});
  GiveBlocksBack(state, sequence);
  state->requests.Move(sequence, Phase::kWaiting);
}

void Check(const State& state) {
  state.blocks.Check();
  std::vector<int32_t> named(static_cast<size_t>(state.blocks.total()), 0);
  int32_t answers = 0;
  int64_t waiting = 0;
  for (const Sequence* const sequence : state.requests.All()) {
    assert(sequence->phase != Phase::kWaiting || sequence->blocks.empty());
    assert(sequence->phase != Phase::kLeaving || sequence->in_flight.steps > 0);
    assert(sequence->in_flight.drawing <= sequence->in_flight.steps &&
           sequence->in_flight.steps <= 2);
    assert((sequence->in_flight.steps > 0) == (sequence->in_flight.planned > sequence->computed));
    assert(sequence->phase == Phase::kLeaving || sequence->pending() > 0 ||
           sequence->in_flight.drawing > 0);
    assert(sequence->computed <= sequence->size() && sequence->size() <= sequence->tokens_max);
    for (const BlockId block : sequence->blocks) ++named[static_cast<size_t>(block)];
    // A block that the next token is written to may be shared before, when copies of an answer have
    // just begun; one that is partly written is never in the cache.
    assert(sequence->published.blocks <= sequence->computed / kBlockTokens);
    if (sequence->phase == Phase::kRunning) answers += sequence->copies;
    if (sequence->phase == Phase::kWaiting) ++waiting;
  }
  for (BlockId block = 0; block < state.blocks.total(); ++block) {
    assert(named[static_cast<size_t>(block)] == state.blocks.ReferencesOf(block));
  }
  assert(answers == state.requests.running_answers());
  assert(waiting == static_cast<int64_t>(state.requests.waiting().size()));
}

}  // namespace scheduler::batching::iteration
