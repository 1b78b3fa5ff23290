#include "serve/llm/stage/sampling_step.h"

#include "kernels/llm/launch.h"

namespace serve::llm {

void SamplingStep::Run(const ResultPlaces& places) {
  Draw(EditedLogits());
  Fetch(drawn_, batch_.how.size(), places.tokens);
  if (batch_.top_logprobs != kNoLogprobs) TellLogprobs(places);
}

const float* SamplingStep::EditedLogits() {
  if (batch_.edits.empty()) return logits_;
  float* const edited = Allocate<float>(batch_.how.size() * static_cast<size_t>(vocabulary_));
  queue_->Launch(kernels::llm::EditLogits{logits_, edited, Place(batch_.edits),
                                          Place(batch_.edits_start), Place(batch_.penalties),
                                          samples(), vocabulary_});
  return edited;
}

// A greedy row has the same token either way.
void SamplingStep::Draw(const float* logits) {
  if (batch_.greedy) {
    queue_->Launch(kernels::llm::ArgMax{logits, drawn_, samples(), vocabulary_});
    return;
  }
  const kernels::llm::SamplingRow* const how = Place(batch_.how);
  uint32_t* const weights =
      Allocate<uint32_t>(batch_.how.size() * static_cast<size_t>(vocabulary_));
  queue_->Launch(kernels::llm::SampleWeights{logits, how, weights, samples(), vocabulary_});
  queue_->Launch(kernels::llm::SampleToken{weights, how, drawn_, samples(), vocabulary_});
}

void SamplingStep::TellLogprobs(const ResultPlaces& places) {
  const size_t samples_count = batch_.how.size();
  const size_t top = samples_count * static_cast<size_t>(batch_.top_logprobs);
  float* const logprobs = Allocate<float>(samples_count);
  int32_t* const ranks = Allocate<int32_t>(samples_count);
  // Memory of no bytes cannot be allocated.
  int32_t* const top_tokens = top == 0 ? nullptr : Allocate<int32_t>(top);
  float* const top_logprobs = top == 0 ? nullptr : Allocate<float>(top);
  queue_->Launch(kernels::llm::Logprobs{logits_, drawn_, logprobs, ranks, top_tokens, top_logprobs,
                                        samples(), vocabulary_, batch_.top_logprobs});
  Fetch(logprobs, samples_count, places.logprobs);
  Fetch(ranks, samples_count, places.ranks);
  Fetch(top_tokens, top, places.top_tokens);
  Fetch(top_logprobs, top, places.top_logprobs);
}

}  // namespace serve::llm
