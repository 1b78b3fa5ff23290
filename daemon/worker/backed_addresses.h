// Which addresses of the sessions' slots have memory behind them now, in this worker.
//
// Every mapping of an extent is entered here (backing.h, lanes.h) after it is made, and taken out
// before it goes. A session asks before each copy, fill and library call, so the answer must cost
// little: the range of the last answer is remembered with the number of ranges that its slot has
// lost so far, and holds as long as that number stands.
//
// Thread safety: BackedAddresses from any thread, as lanes change for sessions that do not run; a
// BackedView is its session thread's.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "ipc/calls/limits.h"

namespace worker {

class BackedAddresses {
 public:
  BackedAddresses() = default;
  BackedAddresses(const BackedAddresses&) = delete;

  // REQUIRES: nothing of the range is backed; it lies within one slot.
  void Add(uint64_t address, uint64_t bytes);
  // REQUIRES: a range that Add took.
  void Remove(uint64_t address, uint64_t bytes);

 private:
  friend class BackedView;
  struct Slot {
    base::Mutex mutex;
    std::map<uint64_t, uint64_t> ends GUARDED_BY(mutex);  // by start; neighbours stay apart
    std::atomic<uint64_t> removals{0};
  };
  Slot& SlotOf(uint64_t address);

  std::array<Slot, ipc::limits::kSlots> slots_;
};

// The backed addresses of one session: its own slot.
class BackedView {
 public:
  BackedView(BackedAddresses* addresses, uint32_t slot)
      : slot_(addresses == nullptr ? nullptr : &addresses->slots_[slot]) {}

  // True when every byte of [address, + bytes) is backed; ranges that touch each other count as
  // one. Without BackedAddresses: nothing is.
  bool Covers(uint64_t address, uint64_t bytes);
  // All that is backed: pairs of address and bytes, in their order.
  std::vector<std::pair<uint64_t, uint64_t>> Ranges() const;
  // How many ranges the slot has lost: while it stands, what was covered is.
  uint64_t removals() const {
    return slot_ == nullptr ? 0 : slot_->removals.load(std::memory_order_acquire);
  }

 private:
  BackedAddresses::Slot* const slot_;
  // The last range that was found, and when.
  uint64_t start_ = 0, end_ = 0, removals_ = 0;
};

}  // namespace worker
