#include "scheduler/batching/iteration/blocks.h"

#include <cassert>

namespace scheduler::batching::iteration {

void Blocks::Reset(int32_t total) {
  slots_.assign(static_cast<size_t>(total), Slot());
  free_.clear();
  for (BlockId block = total - 1; block >= 0; --block) free_.push_back(block);
  first_kept_ = last_kept_ = kNone;
  kept_ = 0;
  cache_.Clear();
}

void Blocks::Keep(BlockId block) {
  Slot& slot = Of(block);
  slot.kept = true;
  slot.before = last_kept_;
  slot.after = kNone;
  (last_kept_ == kNone ? first_kept_ : Of(last_kept_).after) = block;
  last_kept_ = block;
  ++kept_;
}

void Blocks::Unkeep(BlockId block) {
  Slot& slot = Of(block);
  (slot.before == kNone ? first_kept_ : Of(slot.before).after) = slot.after;
  (slot.after == kNone ? last_kept_ : Of(slot.after).before) = slot.before;
  slot.kept = false;
  --kept_;
}

BlockId Blocks::Take() {
  assert(available() > 0);
  BlockId block = first_kept_;
  if (free_.empty()) {
    Unkeep(block);
    cache_.Forget(block);
  } else {
    block = free_.back();
    free_.pop_back();
  }
  Slot& slot = Of(block);
  assert(slot.references == 0 && !slot.kept);
  slot.references = 1;
  return block;
}

void Blocks::Reference(BlockId block) {
  Slot& slot = Of(block);
  if (slot.kept) Unkeep(block);
  ++slot.references;
}

void Blocks::Release(BlockId block) {
  Slot& slot = Of(block);
  assert(slot.references > 0);
  if (--slot.references > 0) return;
  if (cache_.Knows(block)) {
    Keep(block);
  } else {
    free_.push_back(block);
  }
}

std::vector<BlockId> Blocks::Match(std::span<const Token> tokens, uint64_t salt,
                                   CachedPrefix* end) const {
  std::vector<BlockId> blocks;
  *end = CachedPrefix();
  while (tokens.size() >= kBlockTokens) {
    const PrefixCache::Entry* const entry =
        cache_.Find(end->content, tokens.first(kBlockTokens), salt);
    if (entry == nullptr) break;
    blocks.push_back(entry->block);
    *end = {entry->content, end->blocks + 1};
    tokens = tokens.subspan(kBlockTokens);
  }
  return blocks;
}

void Blocks::Publish(BlockId block, std::span<const Token> tokens, uint64_t salt,
                     CachedPrefix* known) {
  assert(IsReferenced(block));
  known->content = cache_.Insert(known->content, tokens, salt, block).content;
  ++known->blocks;
}

void Blocks::Check() const {
  int32_t referenced_now = 0;
  int32_t kept_now = 0;
  for (const Slot& slot : slots_) {
    assert(!slot.kept || slot.references == 0);
    referenced_now += slot.references > 0 ? 1 : 0;
    kept_now += slot.kept ? 1 : 0;
  }
  assert(kept_now == kept_);
  assert(referenced_now + kept_ + static_cast<int32_t>(free_.size()) == total());
  int32_t listed = 0;
  for (BlockId block = first_kept_; block != kNone; block = Of(block).after) {
    assert(cache_.Knows(block));
    ++listed;
  }
  assert(listed == kept_);
}

}  // namespace scheduler::batching::iteration
