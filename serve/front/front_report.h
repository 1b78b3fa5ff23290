// A front's models and requests as JSON, for `laneway top`, `status`, `why` and `trace`. Pure.
// Thread safety: the front's event loop, whose objects the input points to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "scheduler/batching/iteration/iteration_batcher.h"
#include "serve/history/history.h"
#include "serve/llm/generation/engine_generator.h"

namespace serve::front {

// Of a request that names no id: so many of the oldest are told.
inline constexpr size_t kToldRequestsMax = 20;

struct ReportedModel {
  std::string id;
  bool is_draining = false;
  const llm::EngineStatus* engine = nullptr;
  const scheduler::batching::iteration::IterationBatcher* batcher = nullptr;
  uint64_t kv_block_bytes = 0;  // of the keys and values of a block, in all stages
  int64_t generated = 0;        // tokens of all answers since the front began
  double tokens_per_second = 0;
  const history::History* history = nullptr;
};

// One call of the API. It is a request of the batcher for each of its prompts.
struct ReportedCall {
  std::string id;
  size_t model = 0;  // its place among the report's
  std::vector<llm::RequestId> requests;
  int64_t age_us = 0;
};

struct ReportInput {
  int pid = 0;
  uint64_t job = 0;  // 0: none
  std::string url;
  int64_t now_us = 0;
  std::vector<ReportedModel> models;
  std::vector<ReportedCall> calls;  // the oldest first
};

// The answer to a line: {"command": "models"}; {"command": "why"}, with the "id" of a call where
// one is meant; or {"command": "trace"}, with the "model" whose history is meant, counted from 0
// (serve/history/told_history.h). A line that is no such question is answered by {"error": a
// sentence}.
std::string AnswerUntrusted(const std::string& line, const ReportInput& input);

}  // namespace serve::front
