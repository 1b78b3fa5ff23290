// Tokens' bytes as text, piece by piece while a model makes them: a character that is not whole yet
// is held back until its next bytes come. Bytes that can be no character become U+FFFD, one for
// each longest beginning of a character, as the Unicode standard recommends.
//
// Thread safety: none.
#pragma once

#include <string>
#include <string_view>

namespace serve::llm {

class Detokenizer {
 public:
  // The text that these bytes complete: valid UTF-8, may be empty.
  std::string Add(std::string_view bytes);
  // At the end: U+FFFD for a character that never became whole.
  std::string Flush();

 private:
  std::string held_;  // fewer than four bytes, which begin a character
};

}  // namespace serve::llm
