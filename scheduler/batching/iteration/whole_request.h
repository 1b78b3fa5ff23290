// Modes `padded` and `fastertransformer`: batching by whole requests, which Orca is compared with.
//
// A batch of the first max_bs requests begins when the engine is idle, and all of its answers are
// told when the last one has ended (sections 4.2, C1, and 4.5). The engine computes every member
// until then: an answer that has ended is a token of Step::padding in each step. Memory is reserved
// as under `orca`. A request that engines died of is a batch by itself.
//
//   padded             the first step computes all prompts as if each were as long as the longest
//   fastertransformer  as if each were as long as the shortest (section 4.5.2). Later steps compute
//                      the rest of longer prompts token by token
//
// Thread safety: one thread at a time.
#pragma once

#include "scheduler/batching/iteration/state.h"

namespace scheduler::batching::iteration {

class WholeRequest : public Mode {
 public:
  void Select(State* state, Step* step) override;
  int32_t BlocksToBegin(const State& state, const Sequence& sequence) const override;
  bool AnswersTogether() const override { return true; }

 protected:
  enum class FirstStep { kLongestPrompt, kShortestPrompt };
  explicit WholeRequest(FirstStep first_step) : first_step_(first_step) {}

 private:
  void BeginBatch(State* state, Step* step);

  const FirstStep first_step_;
  int32_t members_ = 0;  // of the batch when it began
};

class Padded : public WholeRequest {
 public:
  Padded() : WholeRequest(FirstStep::kLongestPrompt) {}
  const char* name() const override { return "padded"; }
};

class FasterTransformer : public WholeRequest {
 public:
  FasterTransformer() : WholeRequest(FirstStep::kShortestPrompt) {}
  const char* name() const override { return "fastertransformer"; }
};

}  // namespace scheduler::batching::iteration
