#include "serve/llm/format/refusal.h"

#include "absl/strings/str_cat.h"

namespace serve::llm {

absl::Status Damaged(std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("is damaged: ", std::string(what), "; fetch it again"));
}

absl::Status CutShort(std::string_view where) {
  return absl::InvalidArgumentError(
      absl::StrCat("is cut short in its ", std::string(where), "; fetch it again"));
}

std::string Quoted(std::string_view text) {
  constexpr size_t kShownBytesMax = 80;
  std::string shown(text.substr(0, kShownBytesMax));
  for (char& letter : shown) {
    if (letter < 0x20 || letter > 0x7e) letter = '?';
  }
  return shown;
}

}  // namespace serve::llm
