// What the modes of iteration batching decide on, and the moves that all of them make.
//
// Invariants: a block is referenced as often as tables name it. A row writes only blocks that no
// other table and no cached prefix has. A sequence is in at most one step in flight, or in two that
// follow each other under Options::ahead. It keeps its blocks until these are done.
// Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "scheduler/batching/iteration/blocks.h"
#include "scheduler/batching/iteration/event.h"
#include "scheduler/batching/iteration/requests.h"

namespace scheduler::batching::iteration {

struct Options {
  Order order = Order::kFcfs;
  int64_t aging_us = 30'000'000;  // see Order
  int32_t context_max = 2048;     // tokens of a request, the answer included
  int32_t queue_requests_max = 10'000;
  int64_t queue_tokens_max = int64_t{1} << 26;  // to be computed at most
  int32_t answers_max = 64;                     // that run at once; Orca's max_bs is of one step
  int32_t tokens_max = 2048;                    // of a step, under `budget`; >= answers_max
  int32_t steps_in_flight_max = 1;              // Orca's n_workers: the engine's stages
  // `budget` plans a step before the step before is answered, with rows of the same answers, whose
  // tokens the device knows first. REQUIRES: steps_in_flight_max is 2, for an engine of one stage.
  bool ahead = false;
  int32_t watermark_blocks = 8;  // `budget` admits while so many stay free, for those that run
  bool prefix_cache = true;      // under `budget`
  uint64_t hash_seed = 0;        // any number that clients don't know
};

// Since the beginning.
struct Counters {
  int64_t steps = 0;
  int64_t preemptions = 0;
  int64_t computed_tokens = 0;
  int64_t recomputed_tokens = 0;  // whose KV was given up: by preemption, or with an engine
  int64_t prefix_query_tokens = 0;
  int64_t prefix_hit_tokens = 0;
};

struct State {
  explicit State(const Options& given) : options(given), blocks(given.hash_seed) {}

  Options options;
  Requests requests;
  Blocks blocks;
  Counters counters;
  std::vector<Preempted> preempted;  // that are not told yet
  int32_t steps_in_flight = 0;
};

// How one of the modes (orca, budget, whole_request) chooses the rows of the next step.
class Mode {
 public:
  virtual ~Mode() = default;
  virtual const char* name() const = 0;
  // Plans the next step by AddRow, and moves sequences between waiting and running. No rows: there
  // is nothing to do before the next event. REQUIRES: an engine is there.
  virtual void Select(State* state, Step* step) = 0;
  // How many blocks have to be available before a sequence begins that waits.
  virtual int32_t BlocksToBegin(const State& state, const Sequence& sequence) const = 0;
  // The answers to one request begin as one sequence, and share the prompt's blocks.
  virtual bool SharesPrompts() const { return false; }
  // Answers that end are told when all that run have ended.
  virtual bool AnswersTogether() const { return false; }
};

// True when the next step may have a row of the sequence. REQUIRES: the sequence runs.
bool MayCompute(const State& state, const Sequence& sequence);
// The next `count` tokens of the sequence are computed by this step. Its table has blocks for them.
// REQUIRES: MayCompute.
void AddRow(Sequence* sequence, int32_t count, Step* step);
// Takes blocks until the table has room for so many tokens. REQUIRES: they are available.
void TakeBlocks(State* state, Sequence* sequence, int32_t tokens);
// Gives all blocks back; nothing of the sequence is computed any more.
void GiveBlocksBack(State* state, Sequence* sequence);
// A running sequence waits again, without blocks.
void Preempt(State* state, Sequence* sequence);

// All invariants that are about more than one sequence. Asserts; for tests: O(blocks + sequences).
void Check(const State& state);

}  // namespace scheduler::batching::iteration
