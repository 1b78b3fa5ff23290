// Which addresses of the worker's own part of an arena are taken: first fit over one range.
//
// Pure bookkeeping: it knows no memory. The same sequence of calls gives the same addresses. Thread
// safety: none; one session's thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace worker {

class AddressSpace {
 public:
  AddressSpace(uint64_t base, uint64_t bytes);
  // The lowest free range of `bytes`, aligned; `bytes` and `alignment` are rounded by the caller.
  std::optional<uint64_t> Take(uint64_t bytes, uint64_t alignment);
  // REQUIRES: a range that Take returned, or a part of one.
  void Give(uint64_t address, uint64_t bytes);
  bool empty() const { return free_bytes_ == 0; }
  uint64_t free_bytes() const { return free_bytes_; }

 private:
  std::map<uint64_t, uint64_t> free_;  // start -> bytes, neighbours merged
  uint64_t free_bytes_;
};

}  // namespace worker
