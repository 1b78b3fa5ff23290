// What a front asks of a model, and what it is told while the model answers: the border between the
// API (serve/openai/) and whatever schedules and computes.
//
// Thread safety: the front's event loop alone. Ownership: the front keeps a listener until the
// last answer of its request has ended, until the request is refused, or until the front cancels.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "scheduler/batching/iteration/event.h"

namespace serve::llm {

using scheduler::batching::Refusal;
using scheduler::batching::RequestId;
using scheduler::batching::iteration::Ending;

constexpr int32_t kLogprobsUnwanted = -1;

// How the tokens of an answer are drawn: the fields of OpenAI's API and of vLLM's, by their names
// and with their defaults. Values are in the ranges that the API allows.
struct SamplingParameters {
  float temperature = 1;  // 0: greedy
  float top_p = 1;
  int32_t top_k = 0;  // 0: all
  float min_p = 0;
  float repetition_penalty = 1;
  float frequency_penalty = 0;
  float presence_penalty = 0;
  uint64_t seed = 0;
  std::vector<std::pair<int32_t, float>> logit_bias;  // by token
  int32_t min_tokens = 0;                             // before them, no token stops an answer
  bool ignore_eos = false;  // the model's own marks of an end do not stop an answer
  std::vector<int32_t> stop_tokens;
  int32_t logprobs = kLogprobsUnwanted;  // else: of the drawn token, and of so many likeliest
};

struct GenerationRequest {
  std::vector<int32_t> prompt;
  int32_t new_max = 0;  // tokens of each answer
  SamplingParameters sampling;
  uint32_t priority = 1;    // class: 0 is the most urgent
  int64_t deadline_us = 0;  // after the arrival; 0: none
  uint64_t salt = 0;        // prompts are shared among requests of one salt
  int32_t answers = 1;      // to the one prompt, each with random numbers of its own
  std::string id;           // by which its client knows it, for people who watch
};

struct TokenLogprob {
  int32_t token = 0;
  float logprob = 0;
};

// The next token of an answer.
struct GeneratedToken {
  int32_t answer = 0;  // from 0
  int32_t token = 0;
  bool stops = false;             // a token at which the answer ends; it is no text of the answer
  float logprob = 0;              // where logprobs are wanted, as is the rest
  int32_t rank = 0;               // tokens that are likelier
  std::vector<TokenLogprob> top;  // the likeliest first
};

// How a request began: told once, whatever is computed again later.
struct Beginning {
  int64_t queued_us = 0;      // from its arrival to its first step
  int32_t cached_tokens = 0;  // of the prompt, that were computed for another request before
};

class GenerationListener {
 public:
  virtual ~GenerationListener() = default;
  // Before the first token. For those who count.
  virtual void OnBegan(const Beginning&) {}
  // Returns whether the text that the token completes ends the answer. Called once a token, in
  // order, whatever is computed again after a loss.
  virtual bool OnToken(const GeneratedToken& token) = 0;
  virtual void OnAnswerEnded(int32_t answer, Ending why) = 0;
  // The last call: nothing was computed. `retry_after_s` is 0 where trying again is no use.
  virtual void OnRejected(Refusal why, int64_t retry_after_s) = 0;
};

class Generator {
 public:
  virtual ~Generator() = default;
  // May call the listener before it returns. REQUIRES: `listener` outlives its request.
  virtual RequestId Submit(GenerationRequest request, GenerationListener* listener) = 0;
  // The listener is not called any more. Ignored for a request that has ended.
  virtual void Cancel(RequestId request) = 0;
};

}  // namespace serve::llm
