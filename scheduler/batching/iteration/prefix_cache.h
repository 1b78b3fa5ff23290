// Which block has the KV of which tokens, so that prompts that begin alike are computed once.
//
// A block's KV depends on its own tokens and on all before them. Full blocks are therefore known by
// (content of the block before, tokens, salt), where a content is a number that is never given
// twice. All three are compared, so that two different beginnings never pass for one another,
// whatever their hashes are. The hash is seeded: clients cannot aim at one bucket. The chain of
// blocks is as in vLLM's automatic prefix caching. Thread safety: one thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "scheduler/batching/iteration/event.h"

namespace scheduler::batching::iteration {

using ContentId = uint64_t;  // 0: no tokens at all

// How far a sequence is known to the cache.
struct CachedPrefix {
  ContentId content = 0;
  int32_t blocks = 0;
};

class PrefixCache {
 public:
  struct Entry {
    ContentId content = 0;
    BlockId block = 0;
  };

  explicit PrefixCache(uint64_t seed) : entries_(0, Hash{seed}) {}

  // The block with these tokens after `before`. Null: none.
  const Entry* Find(ContentId before, std::span<const Token> tokens, uint64_t salt) const;
  // `block` has these tokens now. When another block has these tokens already, the other block
  // stays in the cache. Returns the cache's entry. REQUIRES: kBlockTokens tokens.
  Entry Insert(ContentId before, std::span<const Token> tokens, uint64_t salt, BlockId block);
  // The block is used for something else. Ignored for a block that no entry names.
  void Forget(BlockId block);
  bool Knows(BlockId block) const {
    const size_t at = static_cast<size_t>(block);
    return at < by_block_.size() && by_block_[at] != nullptr;
  }
  void Clear();
  size_t size() const { return entries_.size(); }

 private:
  struct Content {
    ContentId before = 0;
    uint64_t salt = 0;
    std::array<Token, kBlockTokens> tokens = {};
    bool operator==(const Content&) const = default;
  };
  struct Hash {
    uint64_t seed = 0;
    size_t operator()(const Content& content) const;
  };
  static Content ContentOf(ContentId before, std::span<const Token> tokens, uint64_t salt);

  using Entries = std::unordered_map<Content, Entry, Hash>;

  Entries entries_;
  std::vector<const Content*> by_block_;  // keys of entries_; null: not known
  ContentId last_ = 0;
};

}  // namespace scheduler::batching::iteration
