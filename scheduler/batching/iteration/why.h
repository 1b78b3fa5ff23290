// Where a request stands, and what it waits for: for people who ask. Pure; the batcher decides
// nothing by it. Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <optional>

#include "scheduler/batching/iteration/iteration_batcher.h"

namespace scheduler::batching::iteration {

enum class Standing : uint8_t {
  kLeaving,       // has ended; a step in flight still uses its memory
  kComputes,      // runs: a step in flight has a row of it
  kWaitsForStep,  // runs, or may begin: the next step has a row of it if its tokens suffice
  kNoEngine,      // waits, for no engine is ready
  kAlone,         // waits until nothing else runs: engines have ended while they computed it
  kBehindAlone,   // waits for a request that runs alone
  kBehind,        // waits: others are before it
  kBatch,         // waits until the batch that runs has ended
  kAnswers,       // waits: as many answers run as may
  kBlocks,        // waits for memory
};

struct Why {
  Standing standing = Standing::kWaitsForStep;
  int64_t ahead = 0;      // kBehind: so many wait before it
  int32_t blocks = 0;     // kBlocks: that it needs to begin
  int32_t available = 0;  // kBlocks: that there are
  int32_t prompt = 0;     // tokens of the prompt
  int32_t computed = 0;   // tokens whose KV is on the device
  int32_t generated = 0;  // tokens of the answer
  int32_t generated_max = 0;
};

// Of the request's answer that is first in order. Nothing: the batcher does not know the request.
// Takes time that grows with the requests that wait.
std::optional<Why> WhyOf(const IterationBatcher& batcher, RequestId request);

}  // namespace scheduler::batching::iteration
