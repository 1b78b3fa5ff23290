#include "daemon/worker/backed_addresses.h"

#include <cassert>
#include <iterator>

namespace worker {

namespace limits = ipc::limits;

BackedAddresses::Slot& BackedAddresses::SlotOf(uint64_t address) {
  assert(address >= limits::kSlotBase && address < limits::kSlotsEnd);
  return slots_[(address - limits::kSlotBase) / limits::kSlotBytes];
}

void BackedAddresses::Add(uint64_t address, uint64_t bytes) {
  Slot& slot = SlotOf(address);
  const base::MutexLock lock(&slot.mutex);
  const bool fresh = slot.ends.emplace(address, address + bytes).second;
  assert(fresh);
  (void)fresh;
}

// The number changes first. A session that remembers the range then asks again, and waits for the
// lock.
void BackedAddresses::Remove(uint64_t address, uint64_t bytes) {
  Slot& slot = SlotOf(address);
  const base::MutexLock lock(&slot.mutex);
  const std::map<uint64_t, uint64_t>::iterator range = slot.ends.find(address);
  assert(range != slot.ends.end() && range->second == address + bytes);
  (void)bytes;
  slot.removals.fetch_add(1, std::memory_order_acq_rel);
  slot.ends.erase(range);
}

std::vector<std::pair<uint64_t, uint64_t>> BackedView::Ranges() const {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  if (slot_ == nullptr) return ranges;
  const base::MutexLock lock(&slot_->mutex);
  for (const auto& [address, end] : slot_->ends) ranges.emplace_back(address, end - address);
  return ranges;
}

bool BackedView::Covers(uint64_t address, uint64_t bytes) {
  uint64_t end = 0;
  if (slot_ == nullptr || __builtin_add_overflow(address, bytes, &end)) return false;
  const uint64_t removals = slot_->removals.load(std::memory_order_acquire);
  if (removals == removals_ && address >= start_ && end <= end_) return true;
  const base::MutexLock lock(&slot_->mutex);
  std::map<uint64_t, uint64_t>::const_iterator range = slot_->ends.upper_bound(address);
  if (range == slot_->ends.begin()) return false;
  --range;
  if (range->second <= address) return false;
  const uint64_t start = range->first;
  uint64_t reached = range->second;
  while (reached < end && ++range != slot_->ends.end() && range->first == reached) {
    reached = range->second;
  }
  if (reached < end) return false;
  start_ = start;
  end_ = reached;
  removals_ = slot_->removals.load(std::memory_order_relaxed);
  return true;
}

}  // namespace worker
