// What a front and the engine of a language model tell each other, in frames (serve/engine/
// frames.h) of a kind and its fields.
//
//     front                  engine
//     Load              ->             first of all, to each stage its own
//                       <-   Progress  while weights are copied, from each stage
//                       <-   Ready     steps may come, from each stage
//     Plan              ->             a step, in order, to all stages before any computes it
//                       <-   Answer    of each step, in order, from the last stage
//                       <-   Failed    the last message, wherever something fails
//
// An engine keeps nothing of requests between steps but keys and values: a plan says everything
// else. So a new engine needs no more than a plan that begins at the first tokens again.
//
// Thread safety: functions without state; values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "serve/engine/frames.h"
#include "serve/llm/stage/packed_batch.h"
#include "serve/llm/stage/step_result.h"

namespace serve::llm {

// An engine may be started from a newer file than its front was.
constexpr uint32_t kMessagesVersion = 3;

struct Load {
  uint32_t version = kMessagesVersion;
  std::string path;
  int32_t rows_max = 256;     // of a step
  int32_t requests_max = 64;  // of a step
  int32_t context_max = 0;    // tokens of a request; 0: what the model has
  int32_t blocks = 0;         // of the pool of keys and values; 0: as `pool_bytes` says
  uint64_t pool_bytes = 0;    // of all stages; 0: a share of the memory that is free
  uint32_t kv_type = 0;       // kernels::llm::KvType
  int32_t stage = 0;          // which of `stages` (serve/llm/stage/layer_share.h)
  int32_t stages = 1;
};
struct Progress {
  uint64_t done = 0;  // bytes of weights
  uint64_t of = 0;
};
struct Ready {
  int32_t blocks = 0;
  int32_t context_max = 0;
  int32_t vocabulary = 0;
  int32_t width_columns = 0;  // of products, alike in all stages (serve/engine/gemm_width.h)
  uint32_t width_multiples = 0;
};
struct Failed {
  std::string why;  // a sentence
};
struct Plan {
  uint64_t number = 0;
  std::vector<BatchRequest> requests;
  std::vector<std::pair<int32_t, int32_t>> copies;  // of blocks, before the rows
};
struct Answer {
  uint64_t number = 0;  // of the plan
  StepResult result;    // without logits
  uint64_t step_us = 0;
};

using Message = std::variant<Load, Progress, Ready, Failed, Plan, Answer>;

engine::Bytes Encode(const Message& message);
// False: no message. Numbers in it may be any.
bool DecodeUntrusted(std::span<const std::byte> body, Message* message);

}  // namespace serve::llm
