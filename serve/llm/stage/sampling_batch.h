// How the tokens of a step's sampled rows are drawn: what each request asks for, and the arrays
// that kernels get (kernels/llm/arguments.h). Pure.
// Thread safety: functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/llm/arguments.h"

namespace serve::llm {

constexpr int32_t kNoLogprobs = -1;

// Greedy, unless more is said.
struct Sampling {
  kernels::llm::SamplingRow how = {0, 1, 0, 0, 0, 0, 0};
  kernels::llm::Penalties penalties = {1, 0, 0};
  std::vector<kernels::llm::TokenEdit> edits;  // by rising token: what penalties and biases touch
  int32_t top_logprobs = kNoLogprobs;          // else the drawn token's, and so many likeliest
};

// The end of a sentence that begins with "a request of a step"; empty: nothing is wrong.
std::string SamplingFault(const Sampling& sampling, int32_t vocabulary);

struct SamplingBatch {
  std::vector<kernels::llm::SamplingRow> how;      // [samples]
  std::vector<kernels::llm::Penalties> penalties;  // [samples]
  std::vector<kernels::llm::TokenEdit> edits;      // of all rows
  std::vector<int32_t> edits_start = {0};          // [samples + 1]
  int32_t top_logprobs = kNoLogprobs;              // the most that a row asks for
  bool greedy = true;                              // all rows are

  // REQUIRES: SamplingFault finds nothing.
  void Add(const Sampling& sampling);
};

}  // namespace serve::llm
