// What methods and filters of texts do, for both.
//
// Thread safety: functions without state. REQUIRES: texts are valid UTF-8.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace serve::llm::jinja {

enum class Ends { kBoth, kLeft, kRight };

// Without white space, or without the characters of `characters`.
std::string_view Trimmed(std::string_view text, std::optional<std::string_view> characters,
                         Ends ends);

// `count` < 0: all.
std::string Replaced(std::string_view text, std::string_view from, std::string_view to,
                     int64_t count);

// At white space.
std::vector<std::string_view> SplitAtSpace(std::string_view text, int64_t cuts_max);
// REQUIRES: `separator` is not empty.
std::vector<std::string_view> SplitAt(std::string_view text, std::string_view separator,
                                      int64_t cuts_max);
std::vector<std::string_view> LinesOf(std::string_view text, bool with_ends);

}  // namespace serve::llm::jinja
