// Where a session's memory is, and which orders to move it are open. Both are one word, so other
// threads never see half of a move. More than a scheduler::Place: a new lanewayd may order the way
// back before the session has answered the way out.
//
// Thread safety: any thread; moves are the session's thread's.
#pragma once

#include <atomic>
#include <cstdint>

#include "scheduler/place.h"

namespace worker {

class MemoryPlace {
 public:
  // As lanewayd is told: an order is a way from when the session hears of it to its answer.
  scheduler::Place Look() const {
    using scheduler::Residence;
    const uint32_t word = word_.load();
    if ((word & kOnHost) == 0)
      return {(word & kGoingOut) != 0 ? Residence::kGoingOut : Residence::kDevice};
    return {(word & kComingIn) != 0 ? Residence::kComingIn : Residence::kHost,
            (word & kLaneSaved) != 0};
  }
  bool on_host() const { return (word_.load() & kOnHost) != 0; }

  void Ordered(bool out) { word_.fetch_or(OrderOf(out)); }
  // The order is carried out.
  void Moved(bool out, bool with_lane) {
    Change(kOnHost | kLaneSaved | OrderOf(out), !out        ? 0
                                                : with_lane ? kOnHost | kLaneSaved
                                                            : static_cast<uint32_t>(kOnHost));
  }
  // The memory stays where it is.
  void Refused(bool out) { Change(OrderOf(out), 0); }

 private:
  enum : uint32_t { kOnHost = 1, kLaneSaved = 2, kGoingOut = 4, kComingIn = 8 };
  static uint32_t OrderOf(bool out) { return out ? kGoingOut : kComingIn; }
  void Change(uint32_t clear, uint32_t set) {
    uint32_t before = word_.load();
    while (!word_.compare_exchange_weak(before, (before & ~clear) | set)) {
    }
  }

  std::atomic<uint32_t> word_{0};
};

}  // namespace worker
