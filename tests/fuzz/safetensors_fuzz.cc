// Safetensors files from anywhere. Of a file that is accepted every byte of every tensor is read,
// and tensors' bytes are together the file's.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "serve/llm/format/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> file = std::as_bytes(std::span<const uint8_t>(data, size));
  const absl::StatusOr<serve::llm::TensorSet> tensors =
      serve::llm::DecodeSafetensorsUntrusted(file);
  if (!tensors.ok()) {
    if (tensors.status().message().empty()) std::abort();
    return 0;
  }
  size_t tensor_bytes = 0;
  unsigned sum = 0;
  for (const serve::llm::Tensor& tensor : tensors->all()) {
    tensor_bytes += tensor.bytes.size();
    for (const std::byte byte : tensor.bytes) sum += static_cast<unsigned>(byte);
    if (tensors->Find(tensor.name) != &tensor) std::abort();
    if (tensor.Elements() / tensor.type->block_elements * tensor.type->block_bytes !=
        tensor.bytes.size())
      std::abort();
  }
  // The file is its length of a header, the header and the tensors.
  if (tensor_bytes > size - sizeof(uint64_t) || sum > 255 * size) std::abort();
  return 0;
}
