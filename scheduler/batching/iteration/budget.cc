#include "scheduler/batching/iteration/budget.h"

#include <algorithm>
#include <cassert>
#include <span>
#include <vector>

namespace scheduler::batching::iteration {
namespace {

// One step while it is planned.
struct Plan {
  State* state = nullptr;
  Step* step = nullptr;
  int32_t tokens_left = 0;
  bool preempted = false;
  bool ahead = true;  // no earlier key lacks a block
};

// Of those that no step in flight has; null: there is none.
Sequence* LastAtRest(const Requests& requests) {
  const Requests::Ordered& running = requests.running();
  for (Requests::Ordered::const_reverse_iterator each = running.rbegin(); each != running.rend();
       ++each) {
    if ((*each)->in_flight.steps == 0) return *each;
  }
  return nullptr;
}

// Whether the next token has no block, or one that other tables or the cache have, too.
bool LacksBlock(const State& state, const Sequence& sequence) {
  const size_t at = static_cast<size_t>(sequence.in_flight.planned / kBlockTokens);
  return at == sequence.blocks.size() || !state.blocks.IsOwn(sequence.blocks[at]);
}

// Makes a block available to `sequence`. Preempted copies of the same answer may leave it the block
// that they shared, and then no other block is needed. False: the sequence has no part in this
// step, or was preempted itself. Rows are planned by key, so a preempted sequence has none yet.
bool MakeRoom(Plan* plan, Sequence* sequence) {
  State* const state = plan->state;
  // A row that goes ahead takes no memory from others.
  if (sequence->in_flight.steps > 0)
    return state->blocks.available() > 0 || !LacksBlock(*state, *sequence);
  while (state->blocks.available() == 0 && LacksBlock(*state, *sequence)) {
    Sequence* const last = LastAtRest(state->requests);
    // Blocks of a step in flight may come back with the step.
    if (last == sequence && state->steps_in_flight > 0) return false;
    assert(last != *state->requests.running().begin());
    Preempt(state, last);
    plan->preempted = true;
    if (last == sequence) return false;
  }
  return true;
}

// Gives the sequence a block of its own for its next token. False: it has no part in this step.
bool PrepareNextToken(Plan* plan, Sequence* sequence) {
  State* const state = plan->state;
  if (!MakeRoom(plan, sequence)) return false;
  if (!LacksBlock(*state, *sequence)) return true;
  const size_t at = static_cast<size_t>(sequence->in_flight.planned / kBlockTokens);
  if (at == sequence->blocks.size()) {
    TakeBlocks(state, sequence, sequence->in_flight.planned + 1);
    return true;
  }
  const BlockId own = state->blocks.Take();
  plan->step->copies.push_back({sequence->blocks[at], own});
  state->blocks.Release(sequence->blocks[at]);
  sequence->blocks[at] = own;
  sequence->told = std::min(sequence->told, static_cast<int32_t>(at));
  return true;
}

bool Generates(const Sequence& sequence) { return sequence.pending() == 1; }

// How many rows that generate a step has at most. Without it the first of several steps in flight
// would have all of them, and all stages but one of the engine nothing to do. One stage computes
// all of them in each step.
size_t ShareOfStep(const State& state) {
  if (state.options.ahead) return state.requests.running().size();
  const size_t steps = static_cast<size_t>(state.options.steps_in_flight_max);
  return (state.requests.running().size() + steps - 1) / steps;
}

void PlanGenerating(Plan* plan) {
  std::vector<Sequence*> generating;
  const size_t share = ShareOfStep(*plan->state);
  for (Sequence* const each : plan->state->requests.running()) {
    if (generating.size() == share) break;
    if (MayCompute(*plan->state, *each) && Generates(*each)) generating.push_back(each);
  }
  for (Sequence* const sequence : generating) {
    // The last keys may have been preempted for earlier ones.
    if (sequence->phase != Phase::kRunning) continue;
    // Later keys come to rest, so that an earlier key may preempt them.
    if (sequence->in_flight.steps > 0 && !plan->ahead) continue;
    if (!PrepareNextToken(plan, sequence)) {
      plan->ahead = false;
      continue;
    }
    AddRow(sequence, 1, plan->step);
    --plan->tokens_left;
  }
}

void PlanPrompts(Plan* plan) {
  for (Sequence* const sequence : plan->state->requests.running()) {
    if (plan->tokens_left == 0) return;
    if (!MayCompute(*plan->state, *sequence) || Generates(*sequence)) continue;
    const int32_t count = std::min(plan->tokens_left, sequence->pending());
    AddRow(sequence, count, plan->step);
    plan->tokens_left -= count;
  }
}

// The known beginning of the sequence. The last token is always computed: it samples the next one.
std::vector<BlockId> KnownBlocks(const State& state, const Sequence& sequence, CachedPrefix* end) {
  *end = CachedPrefix();
  if (!state.options.prefix_cache) return {};
  const std::span<const Token> tokens(sequence.tokens);
  return state.blocks.Match(tokens.first(tokens.size() - 1), sequence.salt, end);
}

// A sequence takes no block of its known beginning that is in use. It needs the others, and the
// watermark stays free for sequences that run.
int32_t BlocksBeside(const State& state, const Sequence& sequence,
                     const std::vector<BlockId>& known) {
  int32_t needed = BlocksFor(sequence.size()) - static_cast<int32_t>(known.size());
  for (const BlockId block : known) needed += state.blocks.IsReferenced(block) ? 0 : 1;
  return needed + (state.requests.running().empty() ? 0 : state.options.watermark_blocks);
}

// False: the sequence has to wait, and so have all after it.
bool Begin(Plan* plan, Sequence* sequence) {
  State* const state = plan->state;
  const Options& options = state->options;
  if (state->requests.running_answers() + sequence->copies > options.answers_max) return false;
  CachedPrefix end;
  const std::vector<BlockId> known = KnownBlocks(*state, *sequence, &end);
  if (BlocksBeside(*state, *sequence, known) > state->blocks.available()) return false;
  for (const BlockId block : known) state->blocks.Reference(block);
  sequence->blocks = known;
  sequence->published = end;
  sequence->computed = sequence->in_flight.planned = end.blocks * kBlockTokens;
  state->counters.prefix_query_tokens += sequence->size();
  state->counters.prefix_hit_tokens += sequence->computed;
  state->requests.Move(sequence, Phase::kRunning);
  TakeBlocks(state, sequence, sequence->size());
  const int32_t count = std::min(plan->tokens_left, sequence->pending());
  AddRow(sequence, count, plan->step);
  plan->tokens_left -= count;
  return true;
}

}  // namespace

int32_t Budget::BlocksToBegin(const State& state, const Sequence& sequence) const {
  CachedPrefix end;
  return BlocksBeside(state, sequence, KnownBlocks(state, sequence, &end));
}

void Budget::Select(State* state, Step* step) {
  Plan plan = {state, step, state->options.tokens_max};
  PlanGenerating(&plan);
  PlanPrompts(&plan);
  while (plan.tokens_left > 0 && !plan.preempted) {
    Sequence* const next = state->requests.NextToBegin();
    if (next == nullptr || !Begin(&plan, next)) return;
  }
}

}  // namespace scheduler::batching::iteration
