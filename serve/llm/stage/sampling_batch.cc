#include "serve/llm/stage/sampling_batch.h"

#include <algorithm>
#include <cmath>

namespace serve::llm {
namespace {

bool IsFinite(float value) { return std::isfinite(value); }

}  // namespace

// Comparisons are such that a NaN fails them.
std::string SamplingFault(const Sampling& sampling, int32_t vocabulary) {
  const kernels::llm::SamplingRow& how = sampling.how;
  const kernels::llm::Penalties& penalties = sampling.penalties;
  if (!(how.temperature >= 0) || !IsFinite(how.temperature)) return "has no such temperature";
  if (!(how.top_p > 0 && how.top_p <= 1)) return "has a top_p outside of (0, 1]";
  if (!(how.min_p >= 0 && how.min_p <= 1)) return "has a min_p outside of [0, 1]";
  if (how.top_k < 0) return "has a negative top_k";
  if (!(penalties.repetition > 0) || !IsFinite(penalties.repetition) ||
      !IsFinite(penalties.frequency) || !IsFinite(penalties.presence))
    return "has penalties that make no sense";
  const int32_t most = std::min(kernels::llm::kTopLogprobsMax, vocabulary);
  if (sampling.top_logprobs < kNoLogprobs || sampling.top_logprobs > most)
    return "asks for too many log probabilities";
  int32_t before = -1;
  for (const kernels::llm::TokenEdit& edit : sampling.edits) {
    if (edit.token <= before) return "has edits of logits that are not in order";
    if (edit.token >= vocabulary) return "edits the logit of a token beyond the vocabulary";
    if (!(edit.bias < INFINITY)) return "has a bias that is no number";
    before = edit.token;
  }
  return "";
}

void SamplingBatch::Add(const Sampling& sampling) {
  how.push_back(sampling.how);
  penalties.push_back(sampling.penalties);
  edits.insert(edits.end(), sampling.edits.begin(), sampling.edits.end());
  edits_start.push_back(static_cast<int32_t>(edits.size()));
  top_logprobs = std::max(top_logprobs, sampling.top_logprobs);
  greedy = greedy && !(sampling.how.temperature > 0);
}

}  // namespace serve::llm
