// Cuts a batcher's step into plans that the engine takes. Most steps are one plan. A step of Orca
// has whole prompts, however long they are, and more rows than an engine has memory for. Cutting
// changes no token: a request's bits do not depend on the rows beside it (docs/stages.md). Pure.
//
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "serve/llm/engine/messages.h"

namespace serve::llm {

struct PartLimits {
  int32_t rows = 0;      // of a plan
  int32_t requests = 0;  // of a plan, and tokens that it draws
};

// The plans in order, without numbers. Tokens are drawn in the order of the requests. REQUIRES: no
// request draws more tokens than `limits` says, and each has tokens.
std::vector<Plan> PartsOf(std::vector<BatchRequest> requests,
                          std::vector<std::pair<int32_t, int32_t>> copies,
                          const PartLimits& limits);
// Tokens that the plan draws.
size_t SamplesOf(const Plan& plan);

}  // namespace serve::llm
