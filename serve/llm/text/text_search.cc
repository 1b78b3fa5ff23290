#include "serve/llm/text/text_search.h"

#include <cstring>
#include <string>

namespace serve::llm {

size_t FindText(std::string_view text, std::string_view part, size_t from) {
  if (from > text.size()) return text.npos;
  // The C library's search is linear for any two texts; that of std::string is not.
  const void* const found =
      memmem(text.data() + from, text.size() - from, part.data(), part.size());
  return found == nullptr ? text.npos
                          : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

size_t FindLastText(std::string_view text, std::string_view part) {
  const std::string backwards(text.rbegin(), text.rend());
  const size_t found = FindText(backwards, std::string(part.rbegin(), part.rend()));
  return found == text.npos ? text.npos : text.size() - part.size() - found;
}

}  // namespace serve::llm
