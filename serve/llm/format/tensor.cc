#include "serve/llm/format/tensor.h"

#include <utility>

#include "absl/strings/string_view.h"

namespace serve::llm {

std::optional<uint64_t> ElementsOf(const std::vector<uint64_t>& shape) {
  uint64_t elements = 1;
  for (const uint64_t side : shape) {
    if (__builtin_mul_overflow(elements, side, &elements) || elements > INT64_MAX / 8)
      return std::nullopt;
  }
  return elements;
}

uint64_t Tensor::Elements() const {
  uint64_t elements = 1;
  for (const uint64_t side : shape) elements *= side;
  return elements;
}

bool TensorSet::Add(Tensor tensor) {
  if (!place_of_name_.emplace(tensor.name, tensors_.size()).second) return false;
  tensors_.push_back(std::move(tensor));
  return true;
}

const Tensor* TensorSet::Find(std::string_view name) const {
  const auto found = place_of_name_.find(absl::string_view(name.data(), name.size()));
  return found == place_of_name_.end() ? nullptr : &tensors_[found->second];
}

}  // namespace serve::llm
