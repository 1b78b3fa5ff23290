// The device memory for keys and values: blocks, how often each is referenced, and what to evict.
//
// A block is free, referenced by tables of sequences, or unreferenced but kept because the prefix
// cache knows it. A kept block is evicted when no free one is left, least recently used first.
// A sequence gives its blocks back from the last to the first, so that the end of a shared prefix
// is evicted before its beginning. Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/batching/iteration/event.h"
#include "scheduler/batching/iteration/prefix_cache.h"

namespace scheduler::batching::iteration {

class Blocks {
 public:
  explicit Blocks(uint64_t seed) : cache_(seed) {}

  // An engine with so many blocks, in which nothing was computed.
  void Reset(int32_t total);

  int32_t total() const { return static_cast<int32_t>(slots_.size()); }
  int32_t available() const { return static_cast<int32_t>(free_.size()) + kept_; }
  int32_t referenced() const { return total() - available(); }
  bool IsReferenced(BlockId block) const { return Of(block).references > 0; }
  // One table has the block, and no other sequence can come to it: it may be written.
  bool IsOwn(BlockId block) const { return Of(block).references == 1 && !cache_.Knows(block); }

  // A block without content, referenced once. REQUIRES: available() > 0.
  BlockId Take();
  void Reference(BlockId block);
  void Release(BlockId block);

  // The prefix cache. The longest known beginning of `tokens`, of whole blocks, in the order of the
  // tokens; `end` says how far it is known. References nothing.
  std::vector<BlockId> Match(std::span<const Token> tokens, uint64_t salt, CachedPrefix* end) const;
  // The block has these tokens after what `known` says, which is brought up to date.
  void Publish(BlockId block, std::span<const Token> tokens, uint64_t salt, CachedPrefix* known);

  int32_t ReferencesOf(BlockId block) const { return Of(block).references; }
  // Free, kept and referenced blocks are all there are. Asserts; O(blocks).
  void Check() const;

 private:
  static constexpr BlockId kNone = -1;
  struct Slot {
    int32_t references = 0;
    bool kept = false;
    BlockId before = kNone;  // neighbours in the order of eviction
    BlockId after = kNone;
  };
  const Slot& Of(BlockId block) const { return slots_[static_cast<size_t>(block)]; }
  Slot& Of(BlockId block) { return slots_[static_cast<size_t>(block)]; }
  void Keep(BlockId block);    // as the last to be evicted
  void Unkeep(BlockId block);  // takes it out of the order

  std::vector<Slot> slots_;
  std::vector<BlockId> free_;
  BlockId first_kept_ = kNone;
  BlockId last_kept_ = kNone;
  int32_t kept_ = 0;
  PrefixCache cache_;
};

}  // namespace scheduler::batching::iteration
