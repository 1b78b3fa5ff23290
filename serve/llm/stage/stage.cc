#include "serve/llm/stage/stage.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "include/laneway.h"
#include "kernels/llm/launch.h"
#include "serve/engine/gemm_probe.h"
#include "serve/engine/work_queue.h"
#include "serve/llm/stage/rope_turns.h"
#include "serve/llm/stage/stage_step.h"

namespace serve::llm {
namespace {

// Columns of the matrix products that an engine tries at least.
constexpr int32_t kProbedRows = 512, kProbedRequests = 64;

// The end of a sentence that begins with the file's name; empty: a stage can compute it.
absl::Status WhyNotServed(const ModelTensors& tensors, const ModelSizes& sizes) {
  if (!tensors.faults().empty()) return absl::InvalidArgumentError(tensors.faults().front());
  if (sizes.head_width > kernels::llm::kHeadWidthMax ||
      sizes.head_width % kernels::llm::kHeadWidthStep != 0)
    return absl::UnimplementedError(
        absl::StrCat("has heads of ", sizes.head_width, " elements, which is not supported"));
  return absl::OkStatus();
}

}  // namespace

std::vector<const char*> Stage::Modules() {
  const kernels::llm::Ptx ptx = kernels::llm::PtxOfKernels();
  return {ptx.rows, ptx.attention, ptx.sampling};
}

Stage::Stage(engine::Device* device, const ModelSizes& sizes, const LayerShare& share,
             const StageOptions& options)
    : device_(device),
      sizes_(sizes),
      share_(share),
      kind_(LayerKindOf(*sizes.architecture)),
      options_(options) {
  const int64_t places = int64_t{options.blocks} * kernels::llm::kBlockTokens;
  limits_ = {options.rows_max,
             options.requests_max,
             static_cast<int32_t>(std::min<int64_t>(static_cast<int64_t>(sizes.context), places)),
             options.blocks,
             static_cast<int32_t>(sizes.vocabulary),
             0};
}

absl::StatusOr<std::unique_ptr<Stage>> Stage::Load(engine::Device* device, const Model& model,
                                                   const StageOptions& options,
                                                   const LoadProgress& progress) {
  const absl::StatusOr<ModelSizes>& sizes = model.sizes;
  if (!sizes.ok()) return sizes.status();
  if (const absl::Status status = WhyNotServed(model.tensors, *sizes); !status.ok()) return status;
  const absl::StatusOr<LayerShare> share = ShareOf(*sizes, options.stage, options.stages);
  if (!share.ok()) return share.status();
  std::unique_ptr<Stage> stage(new Stage(device, *sizes, *share, options));
  absl::StatusOr<StageWeights> weights = LoadWeights(device, model.tensors, *share, progress);
  if (!weights.ok()) return weights.status();
  stage->weights_ = *std::move(weights);
  absl::StatusOr<engine::Memory> kv =
      device->Allocate(2 * share->count * stage->KvPoolBytes(), "keys and values");
  if (!kv.ok()) return kv.status();
  stage->kv_ = *std::move(kv);
  absl::StatusOr<engine::Memory> drawn =
      device->Allocate(static_cast<size_t>(options.requests_max) * sizeof(int32_t), "drawn tokens");
  if (!drawn.ok()) return drawn.status();
  stage->drawn_ = *std::move(drawn);
  absl::StatusOr<std::unique_ptr<StepsInFlight>> steps =
      StepsInFlight::Create(device, stage->limits_);
  if (!steps.ok()) return steps.status();
  stage->steps_ = *std::move(steps);
  absl::Status status = stage->LoadTurns(model.tensors);
  if (status.ok() && share->is_last()) status = stage->ChooseWidth();
  if (!status.ok()) return status;
  return stage;
}

absl::Status Stage::LoadTurns(const ModelTensors& tensors) {
  if (sizes_.rope_width == 0) return absl::OkStatus();
  std::vector<float> factors = sizes_.rope_factors;
  if (const ModelTensor* const tensor = tensors.Find("rope_freqs.weight"); tensor != nullptr) {
    factors.resize(tensor->Elements());
    ReadRows(*tensor, 0, tensor->rows, factors);
  }
  const std::vector<float> turns = RopeTurns(sizes_, limits_.positions, factors);
  absl::StatusOr<engine::Memory> memory =
      device_->Allocate(turns.size() * sizeof(float), "turns of positions");
  if (!memory.ok()) return memory.status();
  turns_ = *std::move(memory);
  engine::WorkQueue queue(device_);
  queue.CopyIn(turns_.address(), turns.data(), turns_.bytes());
  return queue.Finish();
}

// All layers' products have the shapes of the first's. The width does not depend on smaller limits
// of an engine: among few columns a narrow width may agree whose bits differ from those of the
// width that agrees among many (OpenBLAS with AVX-512), and a request's bits are the same under any
// limits.
absl::Status Stage::ChooseWidth() {
  const LayerWeights& layer = weights_.layers[0];
  const auto size = [](uint64_t elements) { return static_cast<int32_t>(elements); };
  const int32_t width = size(sizes_.width);
  const int32_t queries = size(sizes_.heads * sizes_.head_width);
  const int32_t keys = size(sizes_.kv_heads * sizes_.head_width);
  const int32_t inner = size(sizes_.feed_forward);
  const int32_t rows = std::max(options_.rows_max, kProbedRows);
  const int32_t requests = std::max(options_.requests_max, kProbedRequests);
  const absl::StatusOr<engine::GemmWidth> chosen =
      engine::ProbeGemmWidth(device_, {{layer.attention_out, width, queries, rows},
                                       {layer.qkv, queries + 2 * keys, width, rows},
                                       {layer.down, width, inner, rows},
                                       {layer.up, kind_.gated ? 2 * inner : inner, width, rows},
                                       {weights_.head, size(sizes_.vocabulary), width, requests}});
  if (!chosen.ok()) return chosen.status();
  width_ = *chosen;
  return absl::OkStatus();
}

size_t Stage::KvBlockBytes() const {
  const size_t element =
      options_.kv_type == kernels::llm::KvType::kHalf ? sizeof(uint16_t) : sizeof(float);
  return kernels::llm::kBlockTokens * sizes_.kv_heads * sizes_.head_width * element;
}

size_t Stage::KvPoolBytes() const { return static_cast<size_t>(options_.blocks) * KvBlockBytes(); }

kernels::llm::KvPages Stage::PagesOf(size_t layer) const {
  char* const keys = reinterpret_cast<char*>(kv_.address()) + 2 * layer * KvPoolBytes();
  return {keys, keys + KvPoolBytes(), options_.kv_type};
}

absl::Status Stage::Submit(const PackedBatch& batch, const HiddenStates& hidden, bool with_logits) {
  laneway_iteration();
  const ResultPlaces places = steps_->Begin(batch, with_logits);
  StageStep step(this, batch, steps_->staging());
  step.CopyBlocks();
  if (batch.rows() > 0) {
    if (share_.is_first()) {
      step.Embed();
    } else {
      step.TakeHiddenStates(hidden.in);
    }
    for (size_t layer = 0; layer < weights_.layers.size(); ++layer) step.Layer(layer);
    if (!share_.is_last()) step.PassHiddenStatesOn(hidden.out);
  }
  if (!batch.sampled.empty() && share_.is_last()) step.Sample(places);
  // The first stage of several does not know what the last one draws.
  if (share_.is_first() && share_.is_last()) limits_.drawn = std::ssize(batch.sampled);
  return steps_->Submitted(step.queue());
}

}  // namespace serve::llm
