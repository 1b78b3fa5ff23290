// Amounts of memory as people write them. Thread safety: stateless.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ipc {

// "6GiB", "512MiB", "64KiB", "1000000" (bytes), "1.5GiB"; nothing for anything else and for more
// than 2^62.
std::optional<uint64_t> ParseBytes(std::string_view text);

}  // namespace ipc
