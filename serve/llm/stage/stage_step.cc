#include "serve/llm/stage/stage_step.h"

#include <cmath>

#include "kernels/llm/launch.h"
#include "serve/llm/stage/sampling_step.h"

namespace serve::llm {
namespace {

int32_t Size(uint64_t elements) { return static_cast<int32_t>(elements); }

}  // namespace

StageStep::StageStep(const Stage* stage, const PackedBatch& batch, std::span<std::byte> staging)
    : stage_(*stage),
      sizes_(stage->sizes_),
      batch_(batch),
      space_(WorkspaceOf(stage->sizes_, stage->kind_.gated, batch, stage->width_)),
      queue_(stage->device_, staging) {
  base_ = queue_.Allocate(space_.bytes);
  rows_ = {PlaceIntegers(batch.start),
           PlaceIntegers(batch.length),
           PlaceIntegers(batch.table),
           batch.requests(),
           batch.rows(),
           batch.table_width};
  ids_ = PlaceIntegers(batch.ids);
  sampled_ = PlaceIntegers(batch.sampled);
  copies_ = PlaceIntegers(batch.copies);
  queue_.Place(base_ + space_.integers, integers_.data(), integers_.size() * sizeof(int32_t));
  ZeroPadding(space_.normed, sizes_.width, batch.rows());
  ZeroPadding(space_.attended, sizes_.heads * sizes_.head_width, batch.rows());
  ZeroPadding(space_.inner, sizes_.feed_forward, batch.rows());
  ZeroPadding(space_.sampled, sizes_.width, Size(batch.sampled.size()));
}

// All arrays reach the device by one copy.
const int32_t* StageStep::PlaceIntegers(const std::vector<int32_t>& numbers) {
  const size_t offset = space_.integers + integers_.size() * sizeof(int32_t);
  integers_.insert(integers_.end(), numbers.begin(), numbers.end());
  return reinterpret_cast<const int32_t*>(base_ + offset);
}

size_t StageStep::HiddenBytes() const {
  return static_cast<size_t>(batch_.rows()) * sizes_.width * sizeof(float);
}

float* StageStep::At(size_t offset) const { return reinterpret_cast<float*>(base_ + offset); }

void StageStep::ZeroPadding(size_t offset, uint64_t width, int32_t rows) {
  const size_t row = width * sizeof(float);
  const size_t padding = static_cast<size_t>(stage_.width_.Padded(rows) - rows);
  queue_.Zero(base_ + offset + static_cast<size_t>(rows) * row, padding * row);
}

void StageStep::CopyBlocks() {
  if (batch_.copies.empty()) return;
  queue_.Launch(kernels::llm::CopyBlocks{
      reinterpret_cast<void*>(stage_.kv_.address()), copies_, Size(batch_.copies.size() / 2),
      Size(2 * stage_.share_.count), static_cast<int64_t>(stage_.KvPoolBytes()),
      Size(stage_.KvBlockBytes())});
}

void StageStep::Embed() {
  queue_.Launch(kernels::llm::Embed{rows_, ids_, stage_.drawn(), stage_.weights_.tokens,
                                    stage_.weights_.positions, At(space_.x), Size(sizes_.width)});
}

void StageStep::TakeHiddenStates(const float* from) {
  queue_.CopyIn(base_ + space_.x, from, HiddenBytes());
}

// The next stage begins, as the first one does, with rows that nothing is to be added to. The norm
// adds the last layer's results to them as the next layer's norm would. Its own result is unused.
void StageStep::PassHiddenStatesOn(float* to) {
  const LayerWeights& last = stage_.weights_.layers.back();
  Norm(true, last.down_bias, last.feed_norm, last.feed_norm_bias);
  queue_.CopyOut(to, base_ + space_.x, HiddenBytes());
}

void StageStep::Norm(bool adds, const float* added_bias, const float* weight, const float* bias) {
  queue_.Launch(kernels::llm::Norm{At(space_.x), adds ? At(space_.added) : nullptr, added_bias,
                                   weight, bias, At(space_.normed), batch_.rows(),
                                   Size(sizes_.width), static_cast<float>(sizes_.norm_epsilon),
                                   stage_.kind_.norm});
}

void StageStep::Multiply(const float* weights, uint64_t out, uint64_t in, size_t x, size_t y,
                         int32_t rows) {
  queue_.Multiply({weights, Size(out), Size(in), At(x), At(y), stage_.width_.Padded(rows)},
                  stage_.width_);
}

// What a part of a layer has computed the next norm adds to the stream, with the part's bias.
void StageStep::Layer(size_t number) {
  const LayerWeights& weights = stage_.weights_.layers[number];
  const float* const bias_before =
      number == 0 ? nullptr : stage_.weights_.layers[number - 1].down_bias;
  Norm(number > 0, bias_before, weights.attention_norm, weights.attention_norm_bias);
  Attention(weights, number);
  Norm(true, weights.attention_out_bias, weights.feed_norm, weights.feed_norm_bias);
  FeedForward(weights);
}

void StageStep::Attention(const LayerWeights& weights, size_t number) {
  const uint64_t queries = sizes_.heads * sizes_.head_width;
  const uint64_t keys = sizes_.kv_heads * sizes_.head_width;
  const kernels::llm::KvPages pages = stage_.PagesOf(number);
  Multiply(weights.qkv, queries + 2 * keys, sizes_.width, space_.normed, space_.qkv, batch_.rows());
  queue_.Launch(kernels::llm::RopeStore{
      rows_, At(space_.qkv), weights.qkv_bias, weights.q_norm, weights.k_norm,
      reinterpret_cast<const float*>(stage_.turns_.address()), At(space_.q), pages,
      Size(sizes_.heads), Size(sizes_.kv_heads), Size(sizes_.head_width), Size(sizes_.rope_width),
      stage_.kind_.pairs, static_cast<float>(sizes_.norm_epsilon)});
  const double scale = 1 / std::sqrt(static_cast<double>(sizes_.head_width));
  queue_.Launch(kernels::llm::PagedAttention{rows_, At(space_.q), pages, At(space_.attended),
                                             Size(sizes_.heads), Size(sizes_.kv_heads),
                                             Size(sizes_.head_width), static_cast<float>(scale)});
  Multiply(weights.attention_out, sizes_.width, queries, space_.attended, space_.added,
           batch_.rows());
}

void StageStep::FeedForward(const LayerWeights& weights) {
  const int32_t inner = Size(sizes_.feed_forward);
  const bool gated = stage_.kind_.gated;
  Multiply(weights.up, (gated ? 2 : 1) * sizes_.feed_forward, sizes_.width, space_.normed,
           space_.up, batch_.rows());
  if (gated) {
    queue_.Launch(kernels::llm::SiluMul{At(space_.up), At(space_.inner), batch_.rows(), inner});
  } else {
    queue_.Launch(
        kernels::llm::Gelu{At(space_.up), weights.up_bias, At(space_.inner), batch_.rows(), inner});
  }
  Multiply(weights.down, sizes_.width, sizes_.feed_forward, space_.inner, space_.added,
           batch_.rows());
}

void StageStep::Sample(const ResultPlaces& places) {
  const StageWeights& weights = stage_.weights_;
  const int32_t samples = Size(batch_.sampled.size());
  Norm(true, weights.layers.back().down_bias, weights.output_norm, weights.output_norm_bias);
  queue_.Launch(kernels::llm::GatherRows{At(space_.normed), sampled_, At(space_.sampled), samples,
                                         Size(sizes_.width)});
  Multiply(weights.head, sizes_.vocabulary, sizes_.width, space_.sampled, space_.logits, samples);
  SamplingStep(&queue_, batch_.sampling, At(space_.logits), Size(sizes_.vocabulary), stage_.drawn())
      .Run(places);
  if (places.logits == nullptr) return;
  places.logits->resize(batch_.sampled.size() * sizes_.vocabulary);
  queue_.CopyOut(places.logits->data(), base_ + space_.logits,
                 places.logits->size() * sizeof(float));
}

}  // namespace serve::llm
