#include "serve/llm/stage/steps_in_flight.h"

#include <cassert>
#include <utility>

#include "kernels/llm/arguments.h"

namespace serve::llm {
namespace {

constexpr size_t kTop = kernels::llm::kTopLogprobsMax;
constexpr size_t kWordsOfSample = 3 + 2 * kTop;  // all are of four bytes

// A batch's integers, and how tokens are drawn with some edits of each; more is rare.
size_t StagingBytes(const BatchLimits& limits) {
  constexpr size_t kEdits = 64;
  const size_t requests = static_cast<size_t>(limits.requests);
  const size_t table = static_cast<size_t>(limits.positions / kernels::llm::kBlockTokens + 1);
  const size_t integers = static_cast<size_t>(limits.rows) + requests * (table + 8);
  return integers * sizeof(int32_t) +
         requests * (sizeof(kernels::llm::SamplingRow) + sizeof(kernels::llm::Penalties) +
                     kEdits * sizeof(kernels::llm::TokenEdit));
}

template <typename T>
std::vector<T> Taken(const T* from, size_t count) {
  return {from, from + count};
}

}  // namespace

absl::StatusOr<std::unique_ptr<StepsInFlight>> StepsInFlight::Create(engine::Device* device,
                                                                     const BatchLimits& limits) {
  const size_t samples = static_cast<size_t>(limits.requests);
  const size_t staging = StagingBytes(limits);
  absl::StatusOr<engine::HostMemory> memory =
      device->AllocateHost(kMax * (samples * kWordsOfSample * sizeof(float) + staging), "steps");
  if (!memory.ok()) return memory.status();
  std::unique_ptr<StepsInFlight> steps(new StepsInFlight(*std::move(memory), samples, staging));
  for (std::unique_ptr<engine::Event>& done : steps->done_) {
    absl::StatusOr<std::unique_ptr<engine::Event>> event = engine::Event::Create(device);
    if (!event.ok()) return event.status();
    done = *std::move(event);
  }
  return steps;
}

size_t StepsInFlight::ResultBytes() const { return samples_max_ * kWordsOfSample * sizeof(float); }

std::byte* StepsInFlight::SlotAt(size_t slot) const {
  return static_cast<std::byte*>(memory_.address()) + slot * (ResultBytes() + staging_bytes_);
}

std::span<std::byte> StepsInFlight::staging() const {
  return {SlotAt(steps_.back().slot) + ResultBytes(), staging_bytes_};
}

ResultPlaces StepsInFlight::PlacesOf(size_t slot) const {
  float* const numbers = reinterpret_cast<float*>(SlotAt(slot));
  int32_t* const integers = reinterpret_cast<int32_t*>(numbers + samples_max_ * (1 + kTop));
  return {.tokens = integers,
          .logprobs = numbers,
          .ranks = integers + samples_max_,
          .top_tokens = integers + 2 * samples_max_,
          .top_logprobs = numbers + samples_max_};
}

ResultPlaces StepsInFlight::Begin(const PackedBatch& batch, bool with_logits) {
  assert(size() < kMax && batch.sampled.size() <= samples_max_);
  steps_.push_back({next_slot_, batch.sampled.size(), batch.sampling.top_logprobs, {}});
  next_slot_ = (next_slot_ + 1) % kMax;
  ResultPlaces places = PlacesOf(steps_.back().slot);
  if (with_logits) places.logits = &steps_.back().logits;
  return places;
}

// After a failure the device may still write to the step's places.
absl::Status StepsInFlight::Submitted(engine::WorkQueue* queue) {
  return queue->Submit(done_[steps_.back().slot].get());
}

absl::StatusOr<StepResult> StepsInFlight::Finish() {
  Step step = std::move(steps_.front());
  steps_.pop_front();
  if (const absl::Status status = done_[step.slot]->Wait(); !status.ok()) return status;
  const ResultPlaces places = PlacesOf(step.slot);
  StepResult result;
  result.tokens = Taken(places.tokens, step.samples);
  result.logits = std::move(step.logits);
  if (step.top_logprobs == kNoLogprobs) return result;
  const size_t top = step.samples * static_cast<size_t>(step.top_logprobs);
  result.logprobs = Taken(places.logprobs, step.samples);
  result.ranks = Taken(places.ranks, step.samples);
  result.top_tokens = Taken(places.top_tokens, top);
  result.top_logprobs = Taken(places.top_logprobs, top);
  return result;
}

}  // namespace serve::llm
