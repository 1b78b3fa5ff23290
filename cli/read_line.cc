#include "cli/read_line.h"

#include <poll.h>
#include <unistd.h>

#include "ipc/futex.h"

namespace cli {

std::optional<std::string> ReadLine(int fd, int64_t timeout_us, size_t bytes_max) {
  const int64_t deadline_ns = ipc::MonotonicNs() + timeout_us * 1000;
  std::string line;
  while (!line.ends_with('\n')) {
    const int64_t left_ms = (deadline_ns - ipc::MonotonicNs()) / 1'000'000;
    pollfd entry{fd, POLLIN, 0};
    if (left_ms <= 0 || poll(&entry, 1, static_cast<int>(left_ms)) <= 0) return std::nullopt;
    char part[16 << 10];
    const ssize_t got = read(fd, part, sizeof part);
    if (got <= 0) break;
    line.append(part, static_cast<size_t>(got));
    if (line.size() > bytes_max) return std::nullopt;
  }
  return line;
}

}  // namespace cli
