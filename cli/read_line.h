// A line that another process answers by, with a bound on time and length. Thread safety:
// stateless.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace cli {

// One line with its end, or what came until the end of file. Nothing: neither came in time, or it
// is longer than `bytes_max`.
std::optional<std::string> ReadLine(int fd, int64_t timeout_us, size_t bytes_max);

}  // namespace cli
