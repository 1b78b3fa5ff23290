// What each owner of persistent memory uses, has reserved and holds: the program itself, whose
// memory is only counted in all, and its pools.
//
// Pure. Thread safety: none; the owner of this object locks.
#pragma once

#include <cstdint>
#include <unordered_map>

namespace shim::arena {

class Owners {
 public:
  static constexpr uint32_t kProgram = 0;  // the owner of cuMemAlloc's blocks
  static constexpr uint32_t kNobody = ~uint32_t{0};

  struct Usage {
    uint64_t used = 0, used_high = 0;          // by live blocks
    uint64_t reserved = 0, reserved_high = 0;  // ranges of its blocks, and what it holds
    uint64_t held = 0;                         // empty ranges
  };

  // Bytes more, or less. Using is counted in live_bytes() for every owner, the program's too.
  void Use(uint32_t owner, int64_t bytes);
  void Reserve(uint32_t owner, int64_t bytes);
  void Hold(uint32_t owner, int64_t bytes);
  // Memory of an owner that lies elsewhere (the lane) and counts as its own.
  void Charge(uint32_t owner, int64_t bytes);
  // Whether the owner may hold empty ranges: a pool that has not ended.
  bool Holds(uint32_t owner) { return owner != kProgram && !Of(owner).ended; }
  void End(uint32_t owner) { Of(owner).ended = true; }

  // As long as this object lives, and up to date.
  const Usage& Watch(uint32_t owner) { return Of(owner).usage; }
  Usage UsageOf(uint32_t owner) const;
  void ResetHigh(uint32_t owner, bool used);
  void SetThreshold(uint32_t owner, uint64_t bytes) { Of(owner).threshold = bytes; }
  uint64_t ThresholdOf(uint32_t owner) const;
  uint64_t live_bytes() const { return live_bytes_; }
  uint64_t held_bytes() const { return held_bytes_; }

  // body(owner, usage, threshold), which may change accounts but name no new owner.
  template <class Body>
  void ForEach(Body body) const {
    for (const std::pair<const uint32_t, Account>& entry : accounts_)
      body(entry.first, entry.second.usage, entry.second.threshold);
  }

 private:
  struct Account {
    Usage usage;
    uint64_t threshold = 0;
    bool ended = false;
  };

  Account& Of(uint32_t owner);

  std::unordered_map<uint32_t, Account> accounts_;  // none is ever taken out
  struct {
    uint32_t owner = kNobody;
    Account* account = nullptr;
  } latest_;  // that Of() was asked for
  uint64_t live_bytes_ = 0;
  uint64_t held_bytes_ = 0;
};

}  // namespace shim::arena
