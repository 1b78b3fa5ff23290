// Texts in columns. Pure. Thread safety: stateless.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cli {

using Rows = std::vector<std::vector<std::string>>;

// Columns as wide as their widest cell; the first `left` columns are texts, the others numbers.
// REQUIRES: at least one row; all have as many cells as the first.
std::string Table(const Rows& rows, size_t left);

// "1.5 GiB", "12 MiB", "0".
std::string BytesText(uint64_t bytes);

// "850 us", "12.5 ms", "3.2 s", "2 h 5 min"; "-" for 0.
std::string TimeText(uint64_t us);

// A text of another program for people: valid UTF-8 without control characters, which could steer a
// terminal. Each byte of what is not becomes '?'.
std::string Printable(std::string_view text_untrusted);

}  // namespace cli
