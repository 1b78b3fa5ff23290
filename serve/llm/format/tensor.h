// A tensor of a model's file, whatever the file's format: its name, type and sides, and where its
// bytes lie. Formats' decoders make tensors; a model's layers are checked against them
// (model/model_tensors.h).
//
// Thread safety: as a struct. Ownership: `bytes` are the mapped file's, which outlives the tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "serve/llm/format/tensor_type.h"

namespace serve::llm {

// Nothing: more elements than any file has, each of which may take 8 bytes.
std::optional<uint64_t> ElementsOf(const std::vector<uint64_t>& shape);

struct Tensor {
  std::string name;
  const TensorType* type = nullptr;
  // The first side is the one whose elements lie side by side. No sides: a single element.
  std::vector<uint64_t> shape;
  std::span<const std::byte> bytes;

  // REQUIRES: the product of the sides does not overflow, as decoders check.
  uint64_t Elements() const;
};

// Tensors in the order of their files, by name.
class TensorSet {
 public:
  // False: a tensor of this name is there already, and stays.
  bool Add(Tensor tensor);

  const std::vector<Tensor>& all() const { return tensors_; }
  // Null: there is none of this name. Valid until the next Add.
  const Tensor* Find(std::string_view name) const;

 private:
  std::vector<Tensor> tensors_;
  absl::flat_hash_map<std::string, size_t> place_of_name_;
};

}  // namespace serve::llm
