#include "serve/llm/generation/growing_answer.h"

#include <algorithm>
#include <cassert>
#include <limits>

namespace serve::llm {
namespace {

using kernels::llm::TokenEdit;

// The token's edit, which is made where there is none yet.
TokenEdit* EditOf(int32_t token, std::vector<TokenEdit>* edits) {
  const std::vector<TokenEdit>::iterator found =
      std::lower_bound(edits->begin(), edits->end(), token,
                       [](const TokenEdit& edit, int32_t sought) { return edit.token < sought; });
  if (found != edits->end() && found->token == token) return &*found;
  return &*edits->insert(found, TokenEdit{token, 0, 0, 0});
}

}  // namespace

GrowingAnswer::GrowingAnswer(const GenerationRequest& request, int32_t number,
                             const std::vector<int32_t>& end_tokens)
    : request_(request), number_(number), stops_(request.sampling.stop_tokens) {
  if (!request.sampling.ignore_eos)
    stops_.insert(stops_.end(), end_tokens.begin(), end_tokens.end());
  for (const auto& [token, bias] : request.sampling.logit_bias)
    EditOf(token, &edits_)->bias += bias;
  if (!NeedsDrawn(request.sampling)) return;
  for (const int32_t token : request.prompt) EditOf(token, &edits_)->appeared = 1;
}

bool NeedsDrawn(const SamplingParameters& sampling) {
  return sampling.repetition_penalty != 1 || sampling.frequency_penalty != 0 ||
         sampling.presence_penalty != 0;
}

int32_t GrowingAnswer::size() const {
  return static_cast<int32_t>(request_.prompt.size() + generated_.size());
}

std::vector<int32_t> GrowingAnswer::Tokens(int32_t first, int32_t count) const {
  assert(first >= 0 && count >= 0 && first + count <= size());
  const int32_t prompt = static_cast<int32_t>(request_.prompt.size());
  std::vector<int32_t> tokens;
  tokens.reserve(static_cast<size_t>(count));
  for (int32_t at = first; at < first + count; ++at) {
    tokens.push_back(at < prompt ? request_.prompt[static_cast<size_t>(at)]
                                 : generated_[static_cast<size_t>(at - prompt)]);
  }
  return tokens;
}

void GrowingAnswer::Append(int32_t token) {
  generated_.push_back(token);
  if (!NeedsDrawn(request_.sampling)) return;
  TokenEdit* const edit = EditOf(token, &edits_);
  edit->appeared = 1;
  ++edit->generated;
}

bool GrowingAnswer::IsShort(int32_t tokens) const {
  return tokens - static_cast<int32_t>(request_.prompt.size()) < request_.sampling.min_tokens;
}

bool GrowingAnswer::StopsAt(int32_t token) const {
  return !IsShort(size()) && std::find(stops_.begin(), stops_.end(), token) != stops_.end();
}

// Random numbers are by the token's position, so that they are the same after a loss.
Sampling GrowingAnswer::NextSampling(bool drawing) const {
  const SamplingParameters& asked = request_.sampling;
  assert(!drawing || !NeedsDrawn(asked));
  const int32_t tokens = size() + (drawing ? 1 : 0);
  Sampling sampling;
  sampling.how = {asked.temperature, asked.top_p, asked.min_p, asked.top_k,
                  asked.seed,        tokens,      number_};
  sampling.penalties = {asked.repetition_penalty, asked.frequency_penalty, asked.presence_penalty};
  sampling.edits = edits_;
  if (IsShort(tokens)) {
    for (const int32_t token : stops_)
      EditOf(token, &sampling.edits)->bias = -std::numeric_limits<float>::infinity();
  }
  sampling.top_logprobs = asked.logprobs;
  return sampling;
}

}  // namespace serve::llm
