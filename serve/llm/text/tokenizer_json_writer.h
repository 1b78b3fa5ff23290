// The files from which the packages tokenizers and transformers load a tokenizer, written of a
// model's parts: a model in a GGUF file has no such files of its own. TokenizerPartsOfJsonUntrusted
// reads the same parts from them again, and the packages make the same tokens of a text.
//
// The files leave out tokens that no text becomes: tokens without text, tokens that are no UTF-8,
// and the second token of one text. Merges get ranks of their own: where two tokens score the same,
// the package takes the one that is listed first, and BytePairs the leftmost.
//
// Thread safety: functions without state. Source: tokenizers 0.22, transformers 5.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "serve/llm/text/tokenizer_parts.h"

namespace serve::llm {

// Unimplemented, with the end of a sentence that begins with the file's name: the file cannot say
// what the parts do. REQUIRES: a Tokenizer was made of the parts.
absl::StatusOr<std::string> TokenizerJson(const TokenizerParts& parts);

// What transformers has to know besides.
struct TokenizerSettings {
  std::string first_token;    // as it is spelled; empty: there is none
  std::string end_token;      // as first_token
  std::string chat_template;  // empty: there is none
  int64_t length_max = 0;     // tokens of a prompt and its answer
};

// The text of tokenizer_config.json. It names every control token, so that clients know which ones
// are no text. A first token and an end that are none of the tokens are left out: transformers
// would add them to the vocabulary. REQUIRES: as above.
std::string TokenizerConfigJson(const TokenizerParts& parts, const TokenizerSettings& settings);

}  // namespace serve::llm
