// What a step of a stage has computed. Thread safety: values.
#pragma once

#include <cstdint>
#include <vector>

namespace serve::llm {

struct StepResult {
  std::vector<int32_t> tokens;  // that follow each sampled row
  std::vector<float> logits;    // [samples, vocabulary], before edits; where they are asked for

  // Logarithms of probabilities, by logits before edits; none: no row has asked.
  std::vector<float> logprobs;      // [samples]: of `tokens`
  std::vector<int32_t> ranks;       // [samples]: how many tokens are likelier
  std::vector<int32_t> top_tokens;  // [samples, the batch's top_logprobs]: the likeliest first
  std::vector<float> top_logprobs;  // as top_tokens
};

}  // namespace serve::llm
