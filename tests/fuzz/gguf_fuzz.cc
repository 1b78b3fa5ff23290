// GGUF files from anywhere. Of a file that is accepted every byte of every tensor is read, and
// what kind of model it is. A tokenizer of its own tokenizes a text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "serve/llm/model/summary.h"
#include "serve/llm/text/detokenizer.h"
#include "serve/llm/text/tokenizer.h"

namespace {

// Text and control tokens of the file's own, if it has a tokenizer.
void Tokenize(const serve::llm::Gguf& gguf) {
  const absl::StatusOr<serve::llm::Tokenizer> tokenizer = serve::llm::Tokenizer::OfGguf(gguf);
  if (!tokenizer.ok()) return;
  const absl::StatusOr<std::vector<int32_t>> tokens =
      tokenizer->Encode("ab  1 \xc3\xa9<s>", serve::llm::ControlTokens::kParsed);
  if (!tokens.ok()) return;
  serve::llm::Detokenizer detokenizer;
  for (const int32_t token : *tokens) {
    if (token < 0 || static_cast<size_t>(token) >= tokenizer->size()) std::abort();
    (void)detokenizer.Add(tokenizer->BytesOf(token));
  }
  (void)detokenizer.Flush();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const std::byte> file = std::as_bytes(std::span<const uint8_t>(data, size));
  const absl::StatusOr<serve::llm::Gguf> gguf = serve::llm::DecodeGgufUntrusted(file);
  if (!gguf.ok()) {
    if (gguf.status().message().empty()) std::abort();
    return 0;
  }
  (void)serve::llm::Summarise(serve::llm::ModelOfGguf(*gguf));
  Tokenize(*gguf);
  size_t tensor_bytes = 0;
  unsigned sum = 0;
  for (const serve::llm::Tensor& tensor : gguf->tensors().all()) {
    tensor_bytes += tensor.bytes.size();
    for (const std::byte byte : tensor.bytes) sum += static_cast<unsigned>(byte);
    if (gguf->tensors().Find(tensor.name) != &tensor) std::abort();
  }
  // Tensors that overlap would be more than the file.
  if (tensor_bytes > size || sum > 255 * size) std::abort();
  for (const char* const key :
       {"k", "tokenizer.ggml.tokens", "tokenizer.ggml.token_type", "tokenizer.ggml.scores"}) {
    (void)gguf->Numbers(key);
    (void)gguf->Texts(key);
    (void)gguf->Integers(key);
    (void)gguf->Number(key);
  }
  return 0;
}
