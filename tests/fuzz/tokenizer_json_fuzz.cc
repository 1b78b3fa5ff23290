// tokenizer.json files from anywhere. One that is accepted tokenizes a text.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "serve/llm/text/detokenizer.h"
#include "serve/llm/text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::StatusOr<serve::llm::Tokenizer> tokenizer =
      serve::llm::Tokenizer::OfJsonUntrusted({reinterpret_cast<const char*>(data), size});
  if (!tokenizer.ok()) {
    if (tokenizer.status().message().empty()) std::abort();
    return 0;
  }
  const absl::StatusOr<std::vector<int32_t>> tokens =
      tokenizer->Encode("ab  1 e\xcc\x81\xe2\x96\x81 <s>\n", serve::llm::ControlTokens::kParsed);
  if (!tokens.ok()) return 0;
  serve::llm::Detokenizer detokenizer;
  for (const int32_t token : *tokens) {
    if (token < 0 || static_cast<size_t>(token) >= tokenizer->size()) std::abort();
    (void)detokenizer.Add(tokenizer->BytesOf(token));
  }
  (void)detokenizer.Flush();
  return 0;
}
