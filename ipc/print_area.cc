#include "ipc/print_area.h"

#include <algorithm>
#include <cstring>

namespace ipc {

bool PrintArea::Append(std::string_view more) {
  const uint64_t start = head.load(std::memory_order_relaxed);
  const uint64_t used = start - tail.load(std::memory_order_acquire);
  if (used > kBytes || more.size() > kBytes - used) return false;
  const size_t at = start % kBytes;
  const size_t first = std::min(more.size(), kBytes - at);
  std::memcpy(text + at, more.data(), first);
  std::memcpy(text, more.data() + first, more.size() - first);
  head.store(start + more.size(), std::memory_order_release);
  return true;
}

std::string PrintArea::Drain() {
  const uint64_t start = tail.load(std::memory_order_relaxed);
  const uint64_t end = head.load(std::memory_order_acquire);
  const size_t bytes = std::min<uint64_t>(end - start, kBytes);
  const size_t at = start % kBytes;
  const size_t first = std::min(bytes, kBytes - at);
  std::string taken(text + at, first);
  taken.append(text, bytes - first);
  tail.store(end, std::memory_order_release);
  return taken;
}

}  // namespace ipc
