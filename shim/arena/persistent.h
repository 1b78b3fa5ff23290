// One device's share of the persistent part: blocks cut from ranges that the worker has backed.
//
// Blocks of up to 1 MiB share ranges of 2 MiB, one set of ranges (a group) for each owner, class of
// size, expected life and stream, so that short-lived small blocks pin no range among weights.
// Larger blocks own their range, so that freeing one gives memory back. An owner is the program
// itself (cuMemAlloc) or one of its pools.
//
// An empty range of a pool stays with the pool: reserved, up to the pool's release threshold, until
// a synchronisation. Any other empty range goes to the cache: still mapped, without an owner. Every
// query counts cached ranges as free, because the next allocation takes them without a round trip.
// The cache keeps up to kCacheBytes. The limit grows when the program needs a range again that the
// cache has just given up (hysteresis): an allocation in a loop is mapped once. Trim() empties the
// cache.
//
// Pure: what must be mapped or unmapped is the caller's to do. Thread safety: none; the owner
// locks. Salus 3.2 separates memory by life in the same way.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "shim/arena/blocks.h"
#include "shim/arena/owners.h"

namespace shim::arena {

inline constexpr uint64_t kRangeBytes = uint64_t{2} << 20;
inline constexpr uint64_t kSmallBytesMax = uint64_t{1} << 20;

class Persistent {
 public:
  static constexpr uint32_t kProgram = Owners::kProgram;
  static constexpr uint64_t kCacheBytes = uint64_t{32} << 20;

  struct Request {
    uint64_t bytes = 0;
    uint32_t owner = kProgram;
    int32_t slot = kAnyStream;  // the stream whose order it is taken in
    bool short_lived = false;
  };
  struct Block {
    uint64_t address = 0;
    uint64_t bytes = 0;  // what it occupies: rounded up
    uint32_t owner = kProgram;
    uint32_t group = kLarge;
    Blocks::Index index = Blocks::kNone;
    Stamp stamp;  // of what was there before
  };
  using Usage = Owners::Usage;

  // False when a range of RangeBytesFor(bytes) must be mapped first. REQUIRES: bytes > 0.
  bool Take(const Request& request, Block* block);
  static uint64_t RangeBytesFor(uint64_t bytes) {
    return bytes <= kSmallBytesMax ? kRangeBytes : RoundUp(bytes, kRangeBytes);
  }
  // A range that was mapped: into the cache, where the next Take finds it.
  void AddRange(Range range);
  // When no range can be had: any place at all, whatever group it pins.
  bool TakeAnywhere(const Request& request, Block* block);

  // Ranges to unmap are appended.
  void Give(const Block& block, Stamp stamp, std::vector<Range>* unmap);
  // An owner gives empty ranges up while it has more than `keep` bytes reserved.
  void Release(uint32_t owner, uint64_t keep, std::vector<Range>* unmap);
  // What an owner may keep at a synchronisation; 0 at first.
  void SetThreshold(uint32_t owner, uint64_t bytes) { owners_.SetThreshold(owner, bytes); }
  uint64_t ThresholdOf(uint32_t owner) const { return owners_.ThresholdOf(owner); }
  // The host has synchronised: every owner releases down to its threshold.
  void OnSynchronized(std::vector<Range>* unmap);
  // What the owner's blocks leave from now on is held by nobody.
  void EndOwner(uint32_t owner, std::vector<Range>* unmap);
  // Gives back what has lain in the cache since it was called last: at boundaries, what a whole
  // iteration did not need.
  void ReleaseUnneeded(std::vector<Range>* unmap);
  // Gives back all that is not live, of owners too, and forgets what the cache learned.
  void Trim(std::vector<Range>* unmap);

  Usage UsageOf(uint32_t owner) const { return owners_.UsageOf(owner); }
  void ResetHigh(uint32_t owner, bool used) { owners_.ResetHigh(owner, used); }
  // Memory of an owner that lies elsewhere (the lane) and counts as its own.
  void Charge(uint32_t owner, int64_t bytes) { owners_.Charge(owner, bytes); }

  uint64_t mapped_bytes() const { return mapped_bytes_; }
  uint64_t cached_bytes() const { return cached_bytes_; }
  uint64_t live_bytes() const { return owners_.live_bytes(); }
  uint64_t held_bytes() const { return owners_.held_bytes(); }
  // What Trim() would give back.
  uint64_t unused_bytes() const { return cached_bytes_ + held_bytes(); }
  // All ranges that are mapped, in no order.
  std::vector<Range> Ranges() const;

 private:
  static constexpr uint32_t kLarge = ~uint32_t{0};
  static constexpr size_t kRegretsMax = 16;

  struct Group {
    uint64_t key = 0;
    uint32_t owner = kProgram;
    Blocks blocks;
    std::vector<uint64_t> ranges;
    uint64_t empty = 0;  // one range that is kept though nothing in it is live; 0: none
  };
  struct Idle {  // a range without blocks
    Range range;
    Stamp stamp;
    uint32_t owner = kNobody;
  };
  static constexpr uint32_t kNobody = Owners::kNobody;
  Group& GroupOf(const Request& request, uint32_t* index);
  bool TakeFrom(uint32_t group, const Request& request, Block* block);
  bool TakeIdle(uint64_t bytes, uint64_t bytes_max, const Request& request, Idle* idle);
  void BecomeIdle(const Idle& idle, std::vector<Range>* unmap);
  void Shrink(uint64_t limit, std::vector<Range>* unmap);
  void DropEmpties(uint32_t owner, bool all, std::vector<Range>* unmap);
  void Uncache(uint64_t bytes);
  void Drop(const Range& range, std::vector<Range>* unmap);

  std::vector<std::unique_ptr<Group>> groups_;
  std::deque<Idle> idle_;                         // the oldest first
  std::unordered_map<uint64_t, uint64_t> large_;  // base -> bytes, in use
  Owners owners_;
  std::deque<uint64_t> given_up_;  // sizes, the latest last
  uint64_t cache_limit_ = kCacheBytes;
  uint64_t mapped_bytes_ = 0;
  uint64_t cached_bytes_ = 0;
  uint64_t cached_low_ = 0;  // the least of it since ReleaseUnneeded
};

}  // namespace shim::arena
