#include "serve/llm/text/detokenizer.h"

#include <algorithm>

#include "serve/llm/text/utf8.h"

namespace serve::llm {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

}  // namespace

std::string Detokenizer::Add(std::string_view bytes) {
  held_.append(bytes);
  std::string text;
  size_t at = 0;
  while (at < held_.size()) {
    const std::string_view rest = std::string_view(held_).substr(at);
    const size_t length = CharacterLength(static_cast<uint8_t>(rest[0]));
    const size_t good = std::max<size_t>(CharacterPrefix(rest), 1);
    if (good < length && good == rest.size()) break;  // whole when more bytes come
    text.append(good == length ? rest.substr(0, length) : kReplacement);
    at += good;
  }
  held_.erase(0, at);
  return text;
}

std::string Detokenizer::Flush() {
  const bool incomplete = !held_.empty();
  held_.clear();
  return std::string(incomplete ? kReplacement : "");
}

}  // namespace serve::llm
