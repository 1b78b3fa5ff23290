#include "serve/llm/model/model_tensors.h"

#include <algorithm>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "serve/llm/format/dequantise.h"
#include "serve/llm/format/refusal.h"
#include "serve/llm/model/tensor_table.h"

namespace serve::llm {
namespace {

constexpr size_t kFaultsMax = 8;
constexpr std::string_view kPrefixOfGpt2 = "transformer.";

// Sides of 1 at the end do not count: writers differ there.
bool HasShape(const Tensor& tensor, uint64_t first, uint64_t second) {
  const auto side = [&tensor](size_t i) { return i < tensor.shape.size() ? tensor.shape[i] : 1; };
  for (size_t i = 2; i < tensor.shape.size(); ++i) {
    if (side(i) != 1) return false;
  }
  return side(0) == first && side(1) == second;
}

TensorLayout LayoutOf(const TensorRow& row, TensorNames names, const Architecture& architecture) {
  if (names == TensorNames::kGguf) return TensorLayout::kRows;
  if (row.use == TensorUse::kProduct && architecture.bit == kGpt2) return TensorLayout::kTransposed;
  if (row.use == TensorUse::kRotated && architecture.bit == kLlama) return TensorLayout::kHalves;
  return TensorLayout::kRows;
}

bool AreEqual(const Tensor& a, const Tensor& b) {
  return a.type == b.type && a.shape == b.shape && std::ranges::equal(a.bytes, b.bytes);
}

}  // namespace

// Compares a file's tensors with the table, and collects the differences.
class TensorBinder {
 public:
  TensorBinder(const TensorSet& tensors, TensorNames names, const ModelSizes& sizes,
               ModelTensors* out)
      : tensors_(tensors), names_(names), sizes_(sizes), out_(out) {
    const bool may_have_prefix =
        names == TensorNames::kTransformers && !sizes.architecture->rotates;
    if (may_have_prefix && tensors.Find(absl::StrCat(std::string(kPrefixOfGpt2), "wte.weight")))
      prefix_ = kPrefixOfGpt2;
  }

  void Bind() {
    for (const TensorRow& row : TensorRows()) {
      if ((row.architectures & sizes_.architecture->bit) == 0) continue;
      for (uint64_t layer = 0; layer < (row.in_each_layer ? sizes_.layers : 1); ++layer)
        BindOne(row, layer);
    }
    for (const Tensor& tensor : tensors_.all()) {
      if (!used_.contains(tensor.name) && !IsPassedOverHere(tensor.name))
        AddFault("has tensors that its architecture does not use, such as ", tensor.name);
    }
  }

 private:
  // Empty: the file's format has no such tensor.
  std::string NameOf(const TensorRow& row, uint64_t layer) const {
    if (names_ == TensorNames::kGguf) return GgufNameOf(row, layer);
    const std::string name = TransformersNameOf(row, *sizes_.architecture, layer);
    return name.empty() || row.use == TensorUse::kHead ? name : absl::StrCat(prefix_, name);
  }

  bool IsPassedOverHere(std::string_view name) const {
    return names_ == TensorNames::kTransformers && IsPassedOver(name, *sizes_.architecture);
  }

  bool IsNeeded(const TensorRow& row) const {
    return row.use == TensorUse::kHead ? sizes_.head == HeadTensor::kOwn : !row.optional;
  }

  void BindOne(const TensorRow& row, uint64_t layer) {
    const std::string name = NameOf(row, layer);
    if (name.empty()) return;
    const Tensor* const tensor = tensors_.Find(name);
    if (tensor == nullptr) {
      if (IsNeeded(row)) AddFault("lacks tensors, such as ", name);
      return;
    }
    used_.insert(tensor->name);
    ModelTensor bound{*tensor, LayoutOf(row, names_, *sizes_.architecture),
                      LengthOf(row.first, sizes_), LengthOf(row.second, sizes_), sizes_.head_width};
    const bool transposed = bound.layout == TensorLayout::kTransposed;
    if (!HasShape(*tensor, transposed ? bound.rows : bound.columns,
                  transposed ? bound.columns : bound.rows))
      AddFault("has tensors of another shape than its sizes say, such as ", name);
    if (!IsReadable(*tensor->type))
      AddFault(absl::StrCat("has tensors of type ", std::string(tensor->type->name),
                            ", which is not read, such as "),
               name);
    if (row.use == TensorUse::kHead && sizes_.head == HeadTensor::kTied)
      CheckTied(*tensor);
    else
      out_->tensors_.emplace(GgufNameOf(row, layer), std::move(bound));
  }

  // Versions of transformers differ in which of the two they take.
  void CheckTied(const Tensor& head) {
    const ModelTensor* const tokens = out_->Find("token_embd.weight");
    if (tokens != nullptr && !AreEqual(tokens->tensor, head))
      AddFault("says tie_word_embeddings, and has a matrix of its own that differs, ", head.name);
  }

  // One sentence of each kind: a model has hundreds of tensors, mostly with the same fault.
  void AddFault(const std::string& kind, std::string_view name) {
    if (out_->faults_.size() < kFaultsMax && kinds_.insert(kind).second)
      out_->faults_.push_back(absl::StrCat(kind, Quoted(name)));
  }

  const TensorSet& tensors_;
  const TensorNames names_;
  const ModelSizes& sizes_;
  ModelTensors* const out_;
  std::string prefix_;
  absl::flat_hash_set<std::string> used_;
  absl::flat_hash_set<std::string> kinds_;
};

ModelTensors::ModelTensors(const TensorSet& tensors, TensorNames names, const ModelSizes& sizes) {
  TensorBinder(tensors, names, sizes, this).Bind();
}

const ModelTensor* ModelTensors::Find(std::string_view name) const {
  const auto found = tensors_.find(absl::string_view(name.data(), name.size()));
  return found == tensors_.end() ? nullptr : &found->second;
}

}  // namespace serve::llm
