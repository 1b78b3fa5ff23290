#include "shim/arena/persistent.h"

#include <algorithm>
#include <cassert>

namespace shim::arena {
namespace {

// A range that is larger than asked for may serve when little of it is wasted.
constexpr uint64_t kSlackPart = 8;

// Blocks with the same key share ranges.
uint64_t KeyOf(const Persistent::Request& request) {
  const uint64_t size_class = request.bytes <= (4u << 10)    ? 0
                              : request.bytes <= (64u << 10) ? 1
                                                             : 2;
  return uint64_t{request.owner} << 32 | static_cast<uint64_t>(request.slot + 1) << 3 |
         size_class << 1 | (request.short_lived ? 1 : 0);
}

}  // namespace

// A linear search: a program has a few owners and streams, so there are some tens of groups.
Persistent::Group& Persistent::GroupOf(const Request& request, uint32_t* index) {
  const uint64_t key = KeyOf(request);
  for (uint32_t i = 0; i < groups_.size(); ++i) {
    if (groups_[i]->key != key) continue;
    *index = i;
    return *groups_[i];
  }
  *index = static_cast<uint32_t>(groups_.size());
  groups_.push_back(std::make_unique<Group>());
  groups_.back()->key = key;
  groups_.back()->owner = request.owner;
  return *groups_.back();
}

// --- taking --------------------------------------------------------------------------------------

bool Persistent::TakeFrom(uint32_t index, const Request& request, Block* block) {
  Group& group = *groups_[index];
  Blocks::Taken taken;
  if (!group.blocks.Take(request.bytes, &taken)) return false;
  if (taken.opened && group.empty != 0) {
    // Only the range that is kept can be empty.
    assert(group.empty <= taken.address && taken.address < group.empty + kRangeBytes);
    group.empty = 0;
    if (owners_.Holds(group.owner)) {
      owners_.Hold(group.owner, -static_cast<int64_t>(kRangeBytes));
    } else {
      Uncache(kRangeBytes);
    }
  }
  *block = {taken.address, taken.bytes, request.owner, index, taken.index, taken.stamp};
  owners_.Use(request.owner, static_cast<int64_t>(taken.bytes));
  return true;
}

// The range whose memory needs no fence for this stream is taken first, then the one that went
// last.
bool Persistent::TakeIdle(uint64_t bytes, uint64_t bytes_max, const Request& request, Idle* idle) {
  std::deque<Idle>::iterator best = idle_.end();
  int best_rank = -1;
  for (std::deque<Idle>::iterator it = idle_.begin(); it != idle_.end(); ++it) {
    if (it->range.bytes < bytes || it->range.bytes > bytes_max) continue;
    if (it->owner != kNobody && it->owner != request.owner) continue;
    const bool same = it->range.bytes == bytes;
    const bool orderly = it->stamp.slot == request.slot;
    const int rank = (same ? 4 : 0) + (it->owner == request.owner ? 2 : 0) + (orderly ? 1 : 0);
    if (rank < best_rank) continue;
    best = it;
    best_rank = rank;
  }
  if (best == idle_.end()) return false;
  *idle = *best;
  idle_.erase(best);
  if (idle->owner == kNobody) {
    Uncache(idle->range.bytes);
    if (owners_.Holds(request.owner))
      owners_.Reserve(request.owner, static_cast<int64_t>(idle->range.bytes));
  } else {
    owners_.Hold(idle->owner, -static_cast<int64_t>(idle->range.bytes));
  }
  return true;
}

bool Persistent::Take(const Request& request, Block* block) {
  assert(request.bytes > 0);
  Idle idle;
  if (request.bytes > kSmallBytesMax) {
    const uint64_t bytes = RangeBytesFor(request.bytes);
    if (!TakeIdle(bytes, bytes + bytes / kSlackPart, request, &idle)) return false;
    large_[idle.range.base] = idle.range.bytes;
    const uint64_t used = RoundUp(request.bytes, kAlignment);
    *block = {idle.range.base, used, request.owner, kLarge, Blocks::kNone, idle.stamp};
    owners_.Use(request.owner, static_cast<int64_t>(used));
    return true;
  }
  uint32_t index = 0;
  Group& group = GroupOf(request, &index);
  if (TakeFrom(index, request, block)) return true;
  if (!TakeIdle(kRangeBytes, kRangeBytes, request, &idle)) return false;
  group.ranges.push_back(idle.range.base);
  group.blocks.AddRange(idle.range, idle.stamp);
  const bool taken = TakeFrom(index, request, block);
  assert(taken);
  return taken;
}

// When no more can be mapped, a block lies among blocks of another size, life or stream.
bool Persistent::TakeAnywhere(const Request& request, Block* block) {
  if (request.bytes > kSmallBytesMax) return false;
  for (uint32_t i = 0; i < groups_.size(); ++i) {
    if (groups_[i]->owner != request.owner) continue;
    if (TakeFrom(i, request, block)) return true;
  }
  return false;
}

void Persistent::AddRange(Range range) {
  mapped_bytes_ += range.bytes;
  cached_bytes_ += range.bytes;
  idle_.push_back({range, {}, kNobody});
  // Needed again soon after it was given up: the cache was too small.
  const std::deque<uint64_t>::iterator regret =
      std::find(given_up_.begin(), given_up_.end(), range.bytes);
  if (regret == given_up_.end()) return;
  given_up_.erase(regret);
  cache_limit_ = std::max(kCacheBytes, std::min(cache_limit_ + range.bytes, mapped_bytes_));
}

// --- giving --------------------------------------------------------------------------------------

void Persistent::Give(const Block& block, Stamp stamp, std::vector<Range>* unmap) {
  owners_.Use(block.owner, -static_cast<int64_t>(block.bytes));
  if (block.group == kLarge) {
    const std::unordered_map<uint64_t, uint64_t>::iterator it = large_.find(block.address);
    assert(it != large_.end());
    const Range range{it->first, it->second};
    large_.erase(it);
    BecomeIdle({range, stamp, block.owner}, unmap);
    return;
  }
  Group& group = *groups_[block.group];
  Range range;
  if (!group.blocks.Give(block.index, stamp, &range)) return;
  if (group.empty == 0) {  // the next small block needs it
    group.empty = range.base;
    if (owners_.Holds(group.owner)) {
      owners_.Hold(group.owner, static_cast<int64_t>(kRangeBytes));
    } else {
      cached_bytes_ += kRangeBytes;
    }
    return;
  }
  Stamp left;
  group.blocks.RemoveRange(range.base, &left);
  std::erase(group.ranges, range.base);
  BecomeIdle({range, left, group.owner}, unmap);
}

void Persistent::BecomeIdle(const Idle& idle, std::vector<Range>* unmap) {
  Idle kept = idle;
  if (owners_.Holds(idle.owner)) {
    owners_.Hold(idle.owner, static_cast<int64_t>(idle.range.bytes));
    idle_.push_back(kept);
    return;
  }
  kept.owner = kNobody;
  cached_bytes_ += idle.range.bytes;
  idle_.push_back(kept);
  Shrink(cache_limit_, unmap);
}

// The lowest fill of the cache since the last boundary is the part that the iteration did not need.
void Persistent::Uncache(uint64_t bytes) {
  cached_bytes_ -= bytes;
  cached_low_ = std::min(cached_low_, cached_bytes_);
}

void Persistent::Drop(const Range& range, std::vector<Range>* unmap) {
  Uncache(range.bytes);
  mapped_bytes_ -= range.bytes;
  given_up_.push_back(range.bytes);
  if (given_up_.size() > kRegretsMax) given_up_.pop_front();
  unmap->push_back(range);
}

// Gives up cached ranges until the cache is within the limit: the longest empty one first.
void Persistent::Shrink(uint64_t limit, std::vector<Range>* unmap) {
  for (std::deque<Idle>::iterator it = idle_.begin(); cached_bytes_ > limit && it != idle_.end();) {
    if (it->owner != kNobody) {
      ++it;
      continue;
    }
    Drop(it->range, unmap);
    it = idle_.erase(it);
  }
}

// The empty ranges that groups keep, of one owner or of all that hold none.
void Persistent::DropEmpties(uint32_t owner, bool all, std::vector<Range>* unmap) {
  for (std::unique_ptr<Group>& group : groups_) {
    if (group->empty == 0) continue;
    const bool held = owners_.Holds(group->owner);
    if (all ? held : group->owner != owner) continue;
    const Range range{group->empty, kRangeBytes};
    Stamp stamp;
    group->blocks.RemoveRange(range.base, &stamp);
    std::erase(group->ranges, range.base);
    group->empty = 0;
    if (held) {
      owners_.Hold(owner, -static_cast<int64_t>(kRangeBytes));
      owners_.Reserve(owner, -static_cast<int64_t>(kRangeBytes));
      cached_bytes_ += kRangeBytes;
    }
    idle_.push_back({range, stamp, kNobody});
  }
}

void Persistent::Release(uint32_t owner, uint64_t keep, std::vector<Range>* unmap) {
  if (owner == kProgram) return;
  const Usage& usage = owners_.Watch(owner);
  for (Idle& idle : idle_) {
    if (usage.held == 0 || usage.reserved <= keep) break;
    if (idle.owner != owner) continue;
    owners_.Hold(owner, -static_cast<int64_t>(idle.range.bytes));
    owners_.Reserve(owner, -static_cast<int64_t>(idle.range.bytes));
    cached_bytes_ += idle.range.bytes;
    idle.owner = kNobody;
  }
  if (usage.held != 0 && usage.reserved > keep) DropEmpties(owner, false, unmap);
  Shrink(cache_limit_, unmap);
}

void Persistent::EndOwner(uint32_t owner, std::vector<Range>* unmap) {
  Release(owner, 0, unmap);
  owners_.End(owner);
}

void Persistent::OnSynchronized(std::vector<Range>* unmap) {
  owners_.ForEach([&](uint32_t owner, const Usage& usage, uint64_t threshold) {
    if (usage.held != 0) Release(owner, threshold, unmap);
  });
}

void Persistent::ReleaseUnneeded(std::vector<Range>* unmap) {
  Shrink(cached_bytes_ - cached_low_, unmap);
  cached_low_ = cached_bytes_;
}

// The cache's limit begins anew: what the program needed before says nothing of what comes.
void Persistent::Trim(std::vector<Range>* unmap) {
  owners_.ForEach([&](uint32_t owner, const Usage&, uint64_t) { Release(owner, 0, unmap); });
  DropEmpties(kNobody, true, unmap);
  Shrink(0, unmap);
  cache_limit_ = kCacheBytes;
  given_up_.clear();
}

std::vector<Range> Persistent::Ranges() const {
  std::vector<Range> all;
  for (const std::unique_ptr<Group>& group : groups_) {
    for (const uint64_t base : group->ranges) all.push_back({base, kRangeBytes});
  }
  for (const std::pair<const uint64_t, uint64_t>& range : large_)
    all.push_back({range.first, range.second});
  for (const Idle& idle : idle_) all.push_back(idle.range);
  return all;
}

}  // namespace shim::arena
