// How deep lists and objects of a text in JSON lie in each other, before a parser makes values of
// it: the parser does not recurse, but what frees and reads the values may. Pure. Thread safety:
// stateless.
#pragma once

#include <cstddef>
#include <string_view>

namespace serve {

// True when brackets outside of texts are nested over `levels` deep. For a text that is no JSON the
// answer may be wrong; the parser refuses such a text.
inline bool IsDeeperThan(size_t levels, std::string_view json) {
  size_t depth = 0;
  bool in_text = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char letter = json[i];
    if (in_text && letter == '\\') {
      ++i;
    } else if (letter == '"') {
      in_text = !in_text;
    } else if (!in_text && (letter == '[' || letter == '{')) {
      if (++depth > levels) return true;
    } else if (!in_text && depth > 0 && (letter == ']' || letter == '}')) {
      --depth;
    }
  }
  return false;
}

}  // namespace serve
