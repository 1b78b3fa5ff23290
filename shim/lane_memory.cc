#include "shim/lane_memory.h"

#include <algorithm>

namespace shim {

using arena::Range;
using arena::Sites;

LaneMemory::LaneMemory(uint64_t base, uint64_t bytes_max, bool enabled)
    : enabled_(enabled), ephemeral_(base, bytes_max) {}

LaneMemory::Class LaneMemory::Predict(int device, uint64_t bytes) const {
  if (!tracking_ || (device_ >= 0 && device != device_)) return Class::kPersistent;
  return sites_.Ask(bytes);
}

uint64_t LaneMemory::BytesFor(const arena::Blocks::Taken& taken) const {
  const uint64_t least = ephemeral_.GrowthFor(taken);
  if (least == 0) return 0;
  const uint64_t learned = arena::RoundUp(learned_peak_, arena::Ephemeral::kStepBytes);
  return std::min(std::max(least, learned), ephemeral_.bytes_max());
}

void LaneMemory::Refuse(const arena::Blocks::Taken& taken) {
  ephemeral_.GiveNow(taken.index, {taken.address, taken.bytes}, taken.stamp);
  refused_ = true;
}

Sites::Birth LaneMemory::OnAllocate(Range block, uint64_t bytes, uint64_t site, bool ephemeral,
                                    uint64_t operations) {
  if (!tracking_) return Sites::kNoBirth;
  const Birth birth = sites_.OnAllocate(bytes, site, ephemeral);
  newborns_.push_back({block, operations, false});
  born_bytes_ += block.bytes;
  born_peak_ = std::max(born_peak_, born_bytes_);
  return birth;
}

bool LaneMemory::OnFree(const Freed& freed, arena::Stamp stamp) {
  const bool young = sites_.IsYoung(freed.birth);
  if (young) {
    newborns_[freed.birth - sites_.first()].dead = true;
    sites_.OnFree(freed.birth);
    born_bytes_ -= freed.block_bytes;
  }
  if (!freed.ephemeral) return false;
  bool kept = false;
  const Range range{freed.base, freed.block_bytes};
  if (young && freed.used) {
    ephemeral_.Give(freed.index, range, stamp);
  } else {
    ephemeral_.GiveNow(freed.index, range, stamp);
  }
  if (!young) {
    strays_.erase(freed.base);
    kept = kept_.erase(freed.base) != 0;
  }
  if (!kept) {
    --blocks_;
    unsent_ += freed.sent ? 0 : 1;
  }
  return kept;
}

Sites::Birth LaneMemory::FirstOfNext(uint64_t operations) const {
  size_t older = newborns_.size();
  while (older > 0 && newborns_[older - 1].operations == operations) --older;
  return sites_.first() + older;
}

void LaneMemory::OnBoundary(uint64_t operations, bool recognised,
                            MemoryAtBoundary::Wishes* wishes) {
  const Birth next = FirstOfNext(operations);
  for (const std::pair<const uint64_t, uint64_t>& stray : strays_)
    wishes->outlived.push_back({stray.first, stray.second});
  strays_.clear();
  for (const Birth birth : sites_.Outlived(next))
    wishes->outlived.push_back(newborns_[birth - sites_.first()].range);
  for (const Range& range : wishes->outlived) {
    if (kept_.insert(range.base).second) --blocks_;
  }
  newborns_.erase(newborns_.begin(), newborns_.begin() + static_cast<long>(next - sites_.first()));
  sites_.OnBoundary(next);
  // The peak of the iteration's own blocks, without the blocks that go on living: those have left
  // the lane, so the next iteration needs no room for them there.
  uint64_t early = 0;
  for (const Newborn& newborn : newborns_) early += newborn.dead ? 0 : newborn.range.bytes;
  learned_peak_ = std::max(learned_peak_, born_peak_ - (born_bytes_ - early));
  born_bytes_ = born_peak_ = early;
  tracking_ = true;
  recognised_ = enabled_ && recognised;
  refused_ = false;
  wishes->ephemeral_bytes = ephemeral_.OnBoundary();
  wishes->persistent_bytes -= ephemeral_.live_bytes();
  wishes->lane_device = std::max(0, device_);
}

void LaneMemory::OnLost() {
  for (const Birth birth : sites_.Outlived(sites_.next())) {
    const Range& range = newborns_[birth - sites_.first()].range;
    strays_[range.base] = range.bytes;
  }
  sites_.OnLost();
  newborns_.clear();
  born_bytes_ = born_peak_ = 0;
  tracking_ = recognised_ = false;
}

bool LaneMemory::OnContextReset(int device) {
  if (device != device_) return false;
  ephemeral_.OnLaneLost();
  blocks_ = unsent_ = 0;
  return true;
}

}  // namespace shim
