#include "scheduler/batching/iteration/prefix_cache.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace scheduler::batching::iteration {
namespace {

// Both halves of a 128-bit product: each bit of the result depends on all bits of `value`.
uint64_t Mixed(uint64_t value, uint64_t key) {
  const __uint128_t product = static_cast<__uint128_t>(value) * (key | 1);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

}  // namespace

size_t PrefixCache::Hash::operator()(const Content& content) const {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15;  // 2^64 divided by the golden ratio
  uint64_t hash = Mixed(seed ^ content.before, kOdd);
  hash = Mixed(hash ^ content.salt, seed + kOdd);
  for (size_t i = 0; i < content.tokens.size(); i += 2) {
    const uint64_t pair = static_cast<uint64_t>(static_cast<uint32_t>(content.tokens[i])) << 32 |
                          static_cast<uint32_t>(content.tokens[i + 1]);
    hash = Mixed(hash ^ pair, seed + kOdd * (i + 2));
  }
  return hash;
}

PrefixCache::Content PrefixCache::ContentOf(ContentId before, std::span<const Token> tokens,
                                            uint64_t salt) {
  assert(tokens.size() == kBlockTokens);
  Content content = {before, salt, {}};
  std::copy(tokens.begin(), tokens.end(), content.tokens.begin());
  return content;
}

const PrefixCache::Entry* PrefixCache::Find(ContentId before, std::span<const Token> tokens,
                                            uint64_t salt) const {
  const Entries::const_iterator found = entries_.find(ContentOf(before, tokens, salt));
  return found == entries_.end() ? nullptr : &found->second;
}

PrefixCache::Entry PrefixCache::Insert(ContentId before, std::span<const Token> tokens,
                                       uint64_t salt, BlockId block) {
  const Content content = ContentOf(before, tokens, salt);
  const auto [entry, is_new] = entries_.try_emplace(content, Entry{last_ + 1, block});
  if (is_new) {
    ++last_;
    const size_t at = static_cast<size_t>(block);
    if (by_block_.size() <= at) by_block_.resize(at + 1, nullptr);
    by_block_[at] = &entry->first;
  }
  return entry->second;
}

void PrefixCache::Forget(BlockId block) {
  if (!Knows(block)) return;
  const Content* const known = std::exchange(by_block_[static_cast<size_t>(block)], nullptr);
  entries_.erase(entries_.find(*known));
}

void PrefixCache::Clear() {
  entries_.clear();
  by_block_.clear();
}

}  // namespace scheduler::batching::iteration
