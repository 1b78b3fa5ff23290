// Mode `budget` (the default): each step has a budget of tokens, memory is taken block by block,
// and who came last gives way when there is none left.
//
// Of each step's Options::tokens_max tokens, every request that generates gets one first, by key.
// Prompts share the rest, in chunks, by key, so that a long prompt does not hold up the others'
// answers. When a request lacks a block, unreferenced blocks of the prefix cache are evicted, then
// the request with the last key is preempted. It waits under its old key, and computes again
// the tokens that have left the cache by then. When nothing was preempted, waiting requests begin
// by key, none before an earlier one. Blocks for all known tokens of the request must be free, and
// Options::watermark_blocks more for the requests that run. The request takes these blocks at once,
// so that no prompt is preempted for a chunk of its own.
//
// The first key is never preempted, and each request fits an empty device, so each one ends.
// Orca (section 4.3.2) reserves for the longest answer instead; budgets of tokens and chunks are as
// in Sarathi-Serve, blocks and preemption as in vLLM. Thread safety: one thread at a time.
#pragma once

#include "scheduler/batching/iteration/state.h"

namespace scheduler::batching::iteration {

class Budget : public Mode {
 public:
  const char* name() const override { return "budget"; }
  void Select(State* state, Step* step) override;
  int32_t BlocksToBegin(const State& state, const Sequence& sequence) const override;
  bool SharesPrompts() const override { return true; }
};

}  // namespace scheduler::batching::iteration
