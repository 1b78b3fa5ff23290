// Sentences from parts. The packaged Abseil does not take std::string_view in StrCat.
// Thread safety: a function without state.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "absl/strings/str_cat.h"

namespace serve::llm::jinja {

template <typename... Parts>
std::string Sentence(const Parts&... parts) {
  const auto part = [](const auto& each) -> decltype(auto) {
    if constexpr (std::is_same_v<std::decay_t<decltype(each)>, std::string_view>)
      return std::string(each);
    else
      return (each);
  };
  return absl::StrCat(part(parts)...);
}

}  // namespace serve::llm::jinja
