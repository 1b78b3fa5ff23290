// The tensors that a model of each architecture has, with their shapes.
#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "serve/llm/format/dequantise.h"
#include "serve/llm/model/architecture.h"

namespace serve::llm {
namespace {

constexpr size_t kFaultsMax = 8;
constexpr uint32_t kRotating = kLlama | kQwen2 | kQwen3;
constexpr uint32_t kAll = kRotating | kGpt2;

// A side of a shape, in terms of the model's sizes.
enum class Side {
  kNone,
  kWidth,
  kVocabulary,
  kContext,
  kQueries,
  kKeys,
  kQkv,
  kHead,
  kInner,
  kTurns
};

struct TensorRow {
  uint32_t architectures;
  bool in_each_layer;  // "blk.N." stands before the name
  bool optional;
  std::string_view name;
  Side first;
  Side second;
};

constexpr TensorRow kTensors[] = {
    {kAll, false, false, "token_embd.weight", Side::kWidth, Side::kVocabulary},
    {kGpt2, false, false, "position_embd.weight", Side::kWidth, Side::kContext},
    {kAll, false, false, "output_norm.weight", Side::kWidth, Side::kNone},
    {kGpt2, false, false, "output_norm.bias", Side::kWidth, Side::kNone},
    {kAll, false, true, "output.weight", Side::kWidth, Side::kVocabulary},  // or the embedding
    {kLlama, false, true, "rope_freqs.weight", Side::kTurns, Side::kNone},
    {kAll, true, false, "attn_norm.weight", Side::kWidth, Side::kNone},
    {kGpt2, true, false, "attn_norm.bias", Side::kWidth, Side::kNone},
    {kRotating, true, false, "attn_q.weight", Side::kWidth, Side::kQueries},
    {kRotating, true, false, "attn_k.weight", Side::kWidth, Side::kKeys},
    {kRotating, true, false, "attn_v.weight", Side::kWidth, Side::kKeys},
    {kQwen2, true, false, "attn_q.bias", Side::kQueries, Side::kNone},
    {kQwen2, true, false, "attn_k.bias", Side::kKeys, Side::kNone},
    {kQwen2, true, false, "attn_v.bias", Side::kKeys, Side::kNone},
    {kQwen3, true, false, "attn_q_norm.weight", Side::kHead, Side::kNone},
    {kQwen3, true, false, "attn_k_norm.weight", Side::kHead, Side::kNone},
    {kGpt2, true, false, "attn_qkv.weight", Side::kWidth, Side::kQkv},
    {kGpt2, true, false, "attn_qkv.bias", Side::kQkv, Side::kNone},
    {kAll, true, false, "attn_output.weight", Side::kQueries, Side::kWidth},
    {kGpt2, true, false, "attn_output.bias", Side::kWidth, Side::kNone},
    {kAll, true, false, "ffn_norm.weight", Side::kWidth, Side::kNone},
    {kGpt2, true, false, "ffn_norm.bias", Side::kWidth, Side::kNone},
    {kRotating, true, false, "ffn_gate.weight", Side::kWidth, Side::kInner},
    {kAll, true, false, "ffn_up.weight", Side::kWidth, Side::kInner},
    {kGpt2, true, false, "ffn_up.bias", Side::kInner, Side::kNone},
    {kAll, true, false, "ffn_down.weight", Side::kInner, Side::kWidth},
    {kGpt2, true, false, "ffn_down.bias", Side::kWidth, Side::kNone},
};

uint64_t LengthOf(Side side, const ModelSizes& sizes) {
  switch (side) {
    case Side::kNone:
      return 1;
    case Side::kWidth:
      return sizes.width;
    case Side::kVocabulary:
      return sizes.vocabulary;
    case Side::kContext:
      return sizes.context;
    case Side::kQueries:
      return sizes.heads * sizes.head_width;
    case Side::kKeys:
      return sizes.kv_heads * sizes.head_width;
    case Side::kQkv:
      return (sizes.heads + 2 * sizes.kv_heads) * sizes.head_width;
    case Side::kHead:
      return sizes.head_width;
    case Side::kInner:
      return sizes.feed_forward;
    case Side::kTurns:
      return sizes.rope_width / 2;
  }
  return 0;
}

// Sides of 1 at the end do not count: writers differ there.
bool HasShape(const GgufTensor& tensor, uint64_t first, uint64_t second) {
  const std::vector<uint64_t>& shape = tensor.shape;
  const bool rest = std::all_of(shape.begin() + std::min<ptrdiff_t>(2, std::ssize(shape)),
                                shape.end(), [](uint64_t side) { return side == 1; });
  return rest && shape[0] == first && (shape.size() < 2 ? 1 : shape[1]) == second;
}

// Compares a file's tensors with the table, and collects the differences.
class TensorCheck {
 public:
  TensorCheck(const Gguf& gguf, const ModelSizes& sizes) : gguf_(gguf), sizes_(sizes) {}

  std::vector<std::string> Faults() {
    for (const TensorRow& row : kTensors) {
      if ((row.architectures & sizes_.architecture->bit) == 0) continue;
      for (uint64_t layer = 0; layer < (row.in_each_layer ? sizes_.layers : 1); ++layer)
        Check(row, row.in_each_layer ? absl::StrCat("blk.", layer, ".", std::string(row.name))
                                     : std::string(row.name));
    }
    for (const GgufTensor& tensor : gguf_.tensors()) {
      if (!used_.contains(tensor.name))
        Add("has tensors that its architecture does not use, such as ", tensor.name);
    }
    return faults_;
  }

 private:
  void Check(const TensorRow& row, const std::string& name) {
    const GgufTensor* const tensor = gguf_.FindTensor(name);
    if (tensor == nullptr) {
      if (!row.optional) Add("lacks tensors, such as ", name);
      return;
    }
    used_.insert(tensor->name);
    if (!HasShape(*tensor, LengthOf(row.first, sizes_), LengthOf(row.second, sizes_)))
      Add("has tensors of another shape than its sizes say, such as ", name);
    if (!IsReadable(*tensor->type))
      Add(absl::StrCat("has tensors of type ", std::string(tensor->type->name),
                       ", which is not read, such as "),
          name);
  }

  // One sentence of each kind: a model has hundreds of tensors, mostly with the same fault.
  void Add(const std::string& kind, std::string_view name) {
    if (faults_.size() < kFaultsMax && kinds_.insert(kind).second)
      faults_.push_back(absl::StrCat(kind, std::string(name)));
  }

  const Gguf& gguf_;
  const ModelSizes& sizes_;
  absl::flat_hash_set<std::string_view> used_;
  absl::flat_hash_set<std::string> kinds_;
  std::vector<std::string> faults_;
};

}  // namespace

std::vector<std::string> TensorFaults(const Gguf& gguf, const ModelSizes& sizes) {
  return TensorCheck(gguf, sizes).Faults();
}

}  // namespace serve::llm
