#include "serve/llm/stage/stage_weights.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "serve/engine/work_queue.h"

namespace serve::llm {
namespace {

constexpr size_t kAlignmentElements = 64;
constexpr uint64_t kChunkElements = 1 << 20;  // or a row, where that is more

// Tensors that lie one behind the other, and the member that points at the first. A row whose first
// tensor the file lacks says nothing.
struct LayerRow {
  const float* LayerWeights::*member;
  std::vector<const char*> names;
};
struct StageRow {
  const float* StageWeights::*member;
  const char* name;
};

const std::vector<LayerRow>& LayerRows() {
  static const std::vector<LayerRow> rows = {
      {&LayerWeights::attention_norm, {"attn_norm.weight"}},
      {&LayerWeights::attention_norm_bias, {"attn_norm.bias"}},
      {&LayerWeights::qkv, {"attn_qkv.weight"}},
      {&LayerWeights::qkv, {"attn_q.weight", "attn_k.weight", "attn_v.weight"}},
      {&LayerWeights::qkv_bias, {"attn_qkv.bias"}},
      {&LayerWeights::qkv_bias, {"attn_q.bias", "attn_k.bias", "attn_v.bias"}},
      {&LayerWeights::q_norm, {"attn_q_norm.weight"}},
      {&LayerWeights::k_norm, {"attn_k_norm.weight"}},
      {&LayerWeights::attention_out, {"attn_output.weight"}},
      {&LayerWeights::attention_out_bias, {"attn_output.bias"}},
      {&LayerWeights::feed_norm, {"ffn_norm.weight"}},
      {&LayerWeights::feed_norm_bias, {"ffn_norm.bias"}},
      {&LayerWeights::up, {"ffn_gate.weight", "ffn_up.weight"}},
      {&LayerWeights::up, {"ffn_up.weight"}},
      {&LayerWeights::up_bias, {"ffn_up.bias"}},
      {&LayerWeights::down, {"ffn_down.weight"}},
      {&LayerWeights::down_bias, {"ffn_down.bias"}},
  };
  return rows;
}

constexpr StageRow kFirstRows[] = {
    {&StageWeights::tokens, "token_embd.weight"},
    {&StageWeights::positions, "position_embd.weight"},
};
constexpr StageRow kLastRows[] = {
    {&StageWeights::output_norm, "output_norm.weight"},
    {&StageWeights::output_norm_bias, "output_norm.bias"},
    {&StageWeights::head, "output.weight"},
};
// Of a model whose logits are made by the embedding of its tokens.
constexpr StageRow kTiedRow = {&StageWeights::head, "token_embd.weight"};

// First places all tensors, then copies them: the memory is one allocation.
class WeightLoader {
 public:
  WeightLoader(engine::Device* device, const ModelTensors& tensors, const LayerShare& share,
               const LoadProgress& progress)
      : device_(device), tensors_(tensors), share_(share), progress_(progress) {}

  uint64_t Bytes() {
    StageWeights weights;
    Place(&weights);
    return elements_ * sizeof(float);
  }

  absl::StatusOr<StageWeights> Load() {
    StageWeights weights;
    Place(&weights);
    absl::StatusOr<engine::Memory> memory =
        device_->Allocate(elements_ * sizeof(float), "the weights");
    if (!memory.ok()) return memory.status();
    weights.memory = *std::move(memory);
    float* const base = reinterpret_cast<float*>(weights.memory.address());
    for (const Item& item : items_) {
      *item.pointer = base + item.offset;
      const absl::Status status = Copy(item, weights.memory.address());
      if (!status.ok()) return status;
    }
    if (weights.head == nullptr && share_.is_last()) weights.head = weights.tokens;
    return weights;
  }

 private:
  struct Item {
    const float** pointer;
    std::vector<const ModelTensor*> tensors;
    size_t offset;  // elements
  };

  void PlaceRow(const StageRow& row, StageWeights* weights) {
    PlaceOne(&(weights->*row.member), {row.name});
  }

  void Place(StageWeights* weights) {
    weights->layers.resize(share_.count);
    if (share_.is_first()) {
      for (const StageRow& row : kFirstRows) PlaceRow(row, weights);
    }
    if (share_.is_last()) {
      for (const StageRow& row : kLastRows) PlaceRow(row, weights);
      // A stage that is the first, too, has the embedding already.
      if (tensors_.Find("output.weight") == nullptr && !share_.is_first())
        PlaceRow(kTiedRow, weights);
    }
    PlaceLayers(weights);
  }

  void PlaceLayers(StageWeights* weights) {
    for (size_t layer = 0; layer < weights->layers.size(); ++layer) {
      for (const LayerRow& row : LayerRows()) {
        const float** const pointer = &(weights->layers[layer].*row.member);
        const bool placed = std::any_of(items_.begin(), items_.end(), [pointer](const Item& item) {
          return item.pointer == pointer;
        });
        if (placed) continue;
        std::vector<std::string> names;
        for (const char* const name : row.names)
          names.push_back(absl::StrCat("blk.", share_.first + layer, ".", name));
        PlaceOne(pointer, names);
      }
    }
  }

  void PlaceOne(const float** pointer, const std::vector<std::string>& names) {
    Item item{pointer, {}, elements_};
    for (const std::string& name : names) {
      const ModelTensor* const tensor = tensors_.Find(name);
      if (tensor == nullptr) return;
      item.tensors.push_back(tensor);
    }
    for (const ModelTensor* const tensor : item.tensors) elements_ += tensor->Elements();
    elements_ = (elements_ + kAlignmentElements - 1) / kAlignmentElements * kAlignmentElements;
    items_.push_back(std::move(item));
  }

  absl::Status Copy(const Item& item, CUdeviceptr base) {
    CUdeviceptr at = base + item.offset * sizeof(float);
    for (const ModelTensor* const tensor : item.tensors) {
      const uint64_t rows_max = std::max<uint64_t>(1, kChunkElements / tensor->columns);
      for (uint64_t done = 0; done < tensor->rows;) {
        const uint64_t rows = std::min(rows_max, tensor->rows - done);
        chunk_.resize(rows * tensor->columns);
        ReadRows(*tensor, done, rows, chunk_);
        engine::WorkQueue queue(device_);
        queue.CopyIn(at, chunk_.data(), chunk_.size() * sizeof(float));
        if (const absl::Status status = queue.Finish(); !status.ok()) return status;
        at += chunk_.size() * sizeof(float);
        done += rows;
        if (progress_) progress_(at - base, elements_ * sizeof(float));
      }
    }
    return absl::OkStatus();
  }

  engine::Device* const device_;
  const ModelTensors& tensors_;
  const LayerShare share_;
  const LoadProgress& progress_;
  std::vector<Item> items_;
  std::vector<float> chunk_;
  size_t elements_ = 0;
};

}  // namespace

absl::StatusOr<StageWeights> LoadWeights(engine::Device* device, const ModelTensors& tensors,
                                         const LayerShare& share, const LoadProgress& progress) {
  return WeightLoader(device, tensors, share, progress).Load();
}

uint64_t WeightBytes(const ModelTensors& tensors, const LayerShare& share) {
  const LoadProgress none;
  return WeightLoader(nullptr, tensors, share, none).Bytes();
}

}  // namespace serve::llm
