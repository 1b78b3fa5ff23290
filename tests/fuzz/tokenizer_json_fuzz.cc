// tokenizer.json files from anywhere. A tokenizer that is accepted makes tokens of a text, and the
// file that is written of its parts makes the same tokens.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "serve/llm/text/detokenizer.h"
#include "serve/llm/text/tokenizer.h"
#include "serve/llm/text/tokenizer_json_writer.h"

namespace {

constexpr std::string_view kText = "ab  1 e\xcc\x81\xe2\x96\x81 <s>\n";

// Some tokenizers cannot be written.
void RequireSameOfWritten(std::string_view file, const std::vector<int32_t>& expected) {
  const absl::StatusOr<serve::llm::TokenizerParts> parts =
      serve::llm::TokenizerPartsOfJsonUntrusted(file);
  const absl::StatusOr<std::string> written = serve::llm::TokenizerJson(*parts);
  if (!written.ok()) return;
  const absl::StatusOr<serve::llm::Tokenizer> again =
      serve::llm::Tokenizer::OfJsonUntrusted(*written);
  if (!again.ok()) std::abort();
  if (*again->Encode(kText, serve::llm::ControlTokens::kParsed) != expected) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::StatusOr<serve::llm::Tokenizer> tokenizer =
      serve::llm::Tokenizer::OfJsonUntrusted({reinterpret_cast<const char*>(data), size});
  if (!tokenizer.ok()) {
    if (tokenizer.status().message().empty()) std::abort();
    return 0;
  }
  const absl::StatusOr<std::vector<int32_t>> tokens =
      tokenizer->Encode(kText, serve::llm::ControlTokens::kParsed);
  if (!tokens.ok()) return 0;
  RequireSameOfWritten({reinterpret_cast<const char*>(data), size}, *tokens);
  serve::llm::Detokenizer detokenizer;
  for (const int32_t token : *tokens) {
    if (token < 0 || static_cast<size_t>(token) >= tokenizer->size()) std::abort();
    (void)detokenizer.Add(tokenizer->BytesOf(token));
  }
  (void)detokenizer.Flush();
  return 0;
}
