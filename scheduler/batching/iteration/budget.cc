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
};

// Of those that no step in flight has; null: there is none.
Sequence* LastAtRest(const Requests& requests) {
  const Requests::Ordered& running = requests.running();
  for (Requests::Ordered::const_reverse_iterator each = running.rbegin(); each != running.rend();
       ++each) {
    if (!(*each)->in_flight) return *each;
  }
  return nullptr;
}

// Whether the next token has no block, or one that other tables or the cache have, too.
bool LacksBlock(const State& state, const Sequence& sequence) {
  const size_t at = static_cast<size_t>(sequence.computed / kBlockTokens);
  return at == sequence.blocks.size() || !state.blocks.IsOwn(sequence.blocks[at]);
}

// Makes a block available to `sequence`, which is at rest. Preempted copies of the same answer may
// leave it the block that they shared, and then no other block is needed. False: the sequence has
// no part in this step, or was preempted itself. Rows are planned by key, so a preempted sequence
// has none yet.
bool MakeRoom(Plan* plan, Sequence* sequence) {
  State* const state = plan->state;
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
  const size_t at = static_cast<size_t>(sequence->computed / kBlockTokens);
  if (at == sequence->blocks.size()) {
    TakeBlocks(state, sequence, sequence->computed + 1);
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

void PlanGenerating(Plan* plan) {
  std::vector<Sequence*> generating;
  for (Sequence* const each : plan->state->requests.running()) {
    if (!each->in_flight && Generates(*each)) generating.push_back(each);
  }
  for (Sequence* const sequence : generating) {
    // The last keys may have been preempted for earlier ones.
    if (sequence->phase != Phase::kRunning || !PrepareNextToken(plan, sequence)) continue;
    AddRow(sequence, 1, plan->step);
    --plan->tokens_left;
  }
}

void PlanPrompts(Plan* plan) {
  for (Sequence* const sequence : plan->state->requests.running()) {
    if (plan->tokens_left == 0) return;
    if (sequence->in_flight || Generates(*sequence)) continue;
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

// False: the sequence has to wait, and so have all after it.
bool Begin(Plan* plan, Sequence* sequence) {
  State* const state = plan->state;
  const Options& options = state->options;
  if (state->requests.running_answers() + sequence->copies > options.answers_max) return false;
  CachedPrefix end;
  const std::vector<BlockId> known = KnownBlocks(*state, *sequence, &end);
  int32_t needed = BlocksFor(sequence->size()) - static_cast<int32_t>(known.size());
  for (const BlockId block : known) needed += state->blocks.IsReferenced(block) ? 0 : 1;
  const bool alone = state->requests.running().empty();
  if (needed + (alone ? 0 : options.watermark_blocks) > state->blocks.available()) return false;
  for (const BlockId block : known) state->blocks.Reference(block);
  sequence->blocks = known;
  sequence->published = end;
  sequence->computed = end.blocks * kBlockTokens;
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
