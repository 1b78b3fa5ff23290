// The latest events, for `laneway trace` and `laneway report`: a ring of events with monotonic
// times.
//
// lanewayd adds an event where it performs or learns of something; nothing is written to disk, and
// the oldest events make room. All memory is taken at once, so a long life does not grow. Thread
// safety: one thread, the loop's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace control {

// Names are what JSON says (NameOf). `text` is what the event says in words, where one is named.
enum class EventKind : uint8_t {
  kSessionBegin,  // text: the program
  kSessionEnd,    // text: how, when it did not just end
  kGrant,         // lane
  kRevoke,        // lane; it hands over at its next boundary
  kSwitch,        // lane; session: the former holder; other: the present holder (0: none)
  kIterations,    // count of them, which ended within took_us until at_us
  kWaitBegin,     // text: for what; bytes
  kWaitEnd,       // took_us
  kSwapOut,       // bytes, took_us
  kSwapIn,        // bytes, took_us
  kLane,          // the lane's size is `bytes` now; session: whom it was changed for
  kPause,
  kResume,
  kMove,    // other: the worker it runs on now
  kEvict,   // text: the peer that asked
  kFault,   // text: the driver's sentence
  kPolicy,  // text: its name
  kLimit,   // text: of how much memory
  kTerms,   // text: what is new
};

const char* NameOf(EventKind kind);

inline constexpr size_t kEventTextBytes = 80;

struct Event {
  EventKind kind = EventKind::kSessionBegin;
  int64_t at_us = 0;  // CLOCK_MONOTONIC; of an interval, its end
  uint64_t session = 0;
  uint64_t job = 0;
  uint64_t lane = 0;
  uint64_t other = 0;
  uint64_t count = 0;
  uint64_t bytes = 0;
  int64_t took_us = 0;
  uint64_t number = 0;              // set by Add: one more than the event before
  char text[kEventTextBytes] = {};  // zero-terminated; set by Add
};

class Journal {
 public:
  static constexpr size_t kEventsMax = 1 << 14;

  explicit Journal(size_t events_max = kEventsMax);

  // `text` is cut to what an event holds. An event that is told late keeps its time, so readers
  // sort: events of one session are added in order.
  void Add(Event event, std::string_view text = {});

  // Up to `max` events with numbers greater than `after`, oldest first.
  std::vector<Event> After(uint64_t after, size_t max) const;
  uint64_t last() const { return added_; }
  // Events that made room.
  uint64_t lost() const { return added_ > ring_.size() ? added_ - ring_.size() : 0; }

 private:
  std::vector<Event> ring_;  // number n at (n - 1) % size
  uint64_t added_ = 0;
};

}  // namespace control
