#include "serve/llm/stage/stage_weights.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "serve/engine/work_queue.h"
#include "serve/llm/format/dequantise.h"

namespace serve::llm {
namespace {

constexpr size_t kAlignmentElements = 64;
constexpr size_t kChunkElements = 1 << 20;  // a whole number of blocks of every type

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

constexpr StageRow kStageRows[] = {
    {&StageWeights::tokens, "token_embd.weight"},
    {&StageWeights::positions, "position_embd.weight"},
    {&StageWeights::output_norm, "output_norm.weight"},
    {&StageWeights::output_norm_bias, "output_norm.bias"},
    {&StageWeights::head, "output.weight"},
};

// First places all tensors, then copies them: the memory is one allocation.
class WeightLoader {
 public:
  WeightLoader(engine::Device* device, const Gguf& gguf) : device_(device), gguf_(gguf) {}

  absl::StatusOr<StageWeights> Load(uint64_t layers) {
    StageWeights weights;
    weights.layers.resize(layers);
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
    if (weights.head == nullptr) weights.head = weights.tokens;
    return weights;
  }

 private:
  struct Item {
    const float** pointer;
    std::vector<const GgufTensor*> tensors;
    size_t offset;  // elements
  };

  void Place(StageWeights* weights) {
    for (const StageRow& row : kStageRows) PlaceOne(&(weights->*row.member), {row.name});
    for (size_t layer = 0; layer < weights->layers.size(); ++layer) {
      for (const LayerRow& row : LayerRows()) {
        const float** const pointer = &(weights->layers[layer].*row.member);
        const bool placed = std::any_of(items_.begin(), items_.end(), [pointer](const Item& item) {
          return item.pointer == pointer;
        });
        if (placed) continue;
        std::vector<std::string> names;
        for (const char* const name : row.names)
          names.push_back(absl::StrCat("blk.", layer, ".", name));
        PlaceOne(pointer, names);
      }
    }
  }

  void PlaceOne(const float** pointer, const std::vector<std::string>& names) {
    Item item{pointer, {}, elements_};
    for (const std::string& name : names) {
      const GgufTensor* const tensor = gguf_.FindTensor(name);
      if (tensor == nullptr) return;
      item.tensors.push_back(tensor);
    }
    for (const GgufTensor* const tensor : item.tensors) elements_ += tensor->Elements();
    elements_ = (elements_ + kAlignmentElements - 1) / kAlignmentElements * kAlignmentElements;
    items_.push_back(std::move(item));
  }

  absl::Status Copy(const Item& item, CUdeviceptr base) {
    CUdeviceptr at = base + item.offset * sizeof(float);
    for (const GgufTensor* const tensor : item.tensors) {
      const TensorType& type = *tensor->type;
      for (size_t done = 0; done < tensor->Elements();) {
        const size_t count = std::min(kChunkElements, tensor->Elements() - done);
        const std::span<const std::byte> blocks =
            tensor->bytes.subspan(done / type.block_elements * type.block_bytes,
                                  count / type.block_elements * type.block_bytes);
        chunk_.resize(count);
        Dequantise(type, blocks, chunk_);
        engine::WorkQueue queue(device_);
        queue.CopyIn(at, chunk_.data(), count * sizeof(float));
        if (const absl::Status status = queue.Finish(); !status.ok()) return status;
        at += count * sizeof(float);
        done += count;
      }
    }
    return absl::OkStatus();
  }

  engine::Device* const device_;
  const Gguf& gguf_;
  std::vector<Item> items_;
  std::vector<float> chunk_;
  size_t elements_ = 0;
};

}  // namespace

absl::StatusOr<StageWeights> LoadWeights(engine::Device* device, const Gguf& gguf,
                                         const ModelSizes& sizes) {
  return WeightLoader(device, gguf).Load(sizes.layers);
}

}  // namespace serve::llm
