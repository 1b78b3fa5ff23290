#include "cli/table.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace cli {
namespace {

// Bytes of the letter that the text begins with. 0: it is no letter of UTF-8, or none that a file
// of XML may hold.
size_t LetterBytes(std::string_view text) {
  const auto byte = [text](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const uint32_t first = byte(0);
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  constexpr uint32_t kLowest[] = {0, 0, 0xa0, 0x800, 0x10000};  // below 0xa0 are control characters
  if (first < 0xc2 || first > 0xf4) return 0;
  uint32_t code = first & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return code < kLowest[bytes] || code > 0x10ffff || surrogate || (code & 0xfffe) == 0xfffe ? 0
                                                                                            : bytes;
}

}  // namespace

std::string Table(const Rows& rows, size_t left) {
  std::vector<size_t> widths(rows[0].size());
  for (const std::vector<std::string>& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const std::vector<std::string>& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - row[i].size(), ' ');
      absl::StrAppend(&line, i == 0 ? "" : "  ", i < left ? row[i] + padding : padding + row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

std::string BytesText(uint64_t bytes) {
  if (bytes == 0) return "0";
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  double value = static_cast<double>(bytes);
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  const bool whole = value == static_cast<double>(static_cast<uint64_t>(value));
  return whole ? absl::StrFormat("%.0f %s", value, kUnits[unit])
               : absl::StrFormat("%.1f %s", value, kUnits[unit]);
}

std::string TimeText(uint64_t us) {
  if (us == 0) return "-";
  if (us < 1000) return absl::StrCat(us, " us");
  const double ms = static_cast<double>(us) / 1000;
  if (ms < 100) return absl::StrFormat("%.1f ms", ms);
  if (ms < 1000) return absl::StrFormat("%.0f ms", ms);
  const double seconds = ms / 1000;
  if (seconds < 100) return absl::StrFormat("%.1f s", seconds);
  const uint64_t minutes = us / 60'000'000;
  if (minutes < 60) return absl::StrFormat("%d min %d s", minutes, us / 1'000'000 % 60);
  return absl::StrFormat("%d h %d min", minutes / 60, minutes % 60);
}

std::string Printable(std::string_view text_untrusted) {
  std::string printable;
  while (!text_untrusted.empty()) {
    const size_t bytes = LetterBytes(text_untrusted);
    printable += bytes == 0 ? std::string_view("?") : text_untrusted.substr(0, bytes);
    text_untrusted.remove_prefix(std::max<size_t>(1, bytes));
  }
  return printable;
}

}  // namespace cli
