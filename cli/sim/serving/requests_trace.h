// Requests to a served model: when they come, how long prompts and answers are.
//
// Read are the Azure LLM inference traces (CSV: TIMESTAMP,ContextTokens,GeneratedTokens) and
// Mooncake's (a JSON object a line: timestamp in ms, input_length, output_length, hash_ids). Or
// they come from a seed, as in Orca, section 4.5: Poisson arrivals, uniform lengths. Thread safety:
// stateless.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace sim::serving {

constexpr int64_t kTokensMax = 1 << 20;  // of a request, prompt and answer together

struct TracedRequest {
  int64_t arrival_us = 0;  // from the first one's
  int64_t prompt_tokens = 1;
  int64_t answer_tokens = 1;
  std::vector<int64_t> hash_ids;  // equal numbers: the same kHashTokens tokens of a prompt
};
constexpr int64_t kHashTokens = 512;

// By arrival. InvalidArgument, one sentence that begins with "FILE:LINE:"; `file` is only for that.
absl::StatusOr<std::vector<TracedRequest>> ParseRequests(std::string_view text,
                                                         const std::string& file);

struct PoissonPlan {
  int64_t requests = 1000;
  double per_s = 1;
  int64_t prompt_min = 32;
  int64_t prompt_max = 512;
  int64_t answer_min = 1;
  int64_t answer_max = 128;
  uint64_t seed = 1;
};
std::vector<TracedRequest> GenerateRequests(const PoissonPlan& plan);

}  // namespace sim::serving
