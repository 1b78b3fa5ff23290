// What a batcher of generative models is told, and what it asks for.
//
// A request is a prompt of tokens and a number of tokens to generate. An engine computes it step by
// step. A step (an iteration, in the words of Orca, section 4.2) takes rows: some tokens each of
// several requests. A row that ends with the last known token of its request samples the next one.
// Keys and values (KV) of computed tokens stay on the device in blocks of kBlockTokens.
// Thread safety: values.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "scheduler/batching/batcher.h"

namespace scheduler::batching::iteration {

using Token = int32_t;
using BlockId = int32_t;
using StepNumber = uint64_t;  // from 1, in the order in which steps begin

constexpr int32_t kBlockTokens = 16;

// --- what happens --------------------------------------------------------------------------------

struct Arrived {
  RequestId request = 0;  // REQUIRES: greater than of all requests before
  std::vector<Token> tokens;
  int32_t new_max = 0;      // tokens to generate, unless one stops earlier
  uint32_t priority = 1;    // class: 0 is the most urgent
  int64_t deadline_us = 0;  // the answer is worth nothing so long after the arrival; 0: none
  uint64_t salt = 0;        // requests share computed prompts with others of the same salt alone
  int32_t copies = 1;       // answers that are sampled for the one prompt
  // How a token is drawn depends on those drawn before, as under penalties. So no row of the
  // request goes ahead (Options::ahead).
  bool needs_drawn = false;
};
struct Sampled {
  Token token = 0;
  bool stops = false;  // this token, or the text that it completes, ends the answer
};
// The engine has computed the step. REQUIRES: as many tokens as the step's rows sample, in order.
// Ignored for a step that is not in flight, such as one of an engine that was lost since.
struct StepDone {
  StepNumber step = 0;
  std::vector<Sampled> sampled;
};
// A new engine, which has computed nothing yet, has room for so many blocks. REQUIRES: > 0.
struct EngineReady {
  int32_t blocks = 0;
};
// The engine has ended with all that it computed. Requests go on in the next one.
struct EngineLost {};

using Event = std::variant<Arrived, Cancelled, StepDone, EngineReady, EngineLost, Timer>;

// --- what to do ----------------------------------------------------------------------------------

// Tokens [first, first + count) of one answer. Its table of blocks is what was told of it before up
// to `table_first`, and `blocks` from there on.
struct Row {
  RequestId request = 0;
  int32_t copy = 0;  // which answer to the request
  int32_t first = 0;
  int32_t count = 0;
  int32_t samples = 0;  // next tokens to draw: of this answer, then of the copies after it
  int32_t table_first = 0;
  std::vector<BlockId> blocks;
  // Under Options::ahead its one token may not be known yet: the token that this sample of the step
  // before draws. -1: all are known.
  int32_t follows = -1;
};
// The KV of a whole block.
struct BlockCopy {
  BlockId from = 0;
  BlockId to = 0;
};
// To be answered by StepDone. Steps reach the device in the order of their numbers. The copies of a
// step come before its rows, in order.
struct Step {
  StepNumber number = 0;
  std::vector<Row> rows;
  std::vector<BlockCopy> copies;
  int32_t padding = 0;  // tokens that are computed in vain beside the rows (whole_request.h)
  int32_t samples = 0;  // of all rows
};
enum class Ending : uint8_t {
  kStopped,      // a token stopped it
  kLength,       // as many tokens as were asked for, or as fit
  kCancelled,    // by its client
  kExpired,      // its deadline has passed
  kEngineFault,  // engines die of this request: see Sequence::deaths
  kTooLong,      // a new engine has less memory, and the request can never fit
};
// The answer `copy` of the request has ended. No row of a later step names it.
struct Finished {
  RequestId request = 0;
  int32_t copy = 0;
  Ending why = Ending::kStopped;
};

// The answer has given its memory up, and waits again under its old key. A later row begins at what
// is known then. For those who watch: nothing is to be done.
struct Preempted {
  RequestId request = 0;
  int32_t copy = 0;
};

using Action = std::variant<Step, Finished, Rejected, SetTimer, Preempted>;

}  // namespace scheduler::batching::iteration
