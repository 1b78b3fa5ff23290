// The manners of all batchers: how requests arrive and leave, whatever a batcher does with them.
//
// A batcher decides which requests a serving engine computes together. It is a pure machine:
// OnEvent takes one event and the time, and appends the actions to perform, in order. It knows no
// clock, lock, file, socket or device, so that a server and the simulator run the same decisions.
// Each kind of batcher has its own variants of events and actions; those that all kinds share are
// here. Times are microseconds of any one monotonic clock. Thread safety: one thread at a time.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace scheduler::batching {

// Given by the server, never used again.
using RequestId = uint64_t;

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// --- events that every batcher understands -------------------------------------------------------

// The client has gone. Ignored for a request that the batcher does not know (any more).
struct Cancelled {
  RequestId request = 0;
};
// The time of the last SetTimer has come.
struct Timer {};

// --- actions that every batcher returns ----------------------------------------------------------

enum class Refusal : uint8_t {
  kEmpty,          // nothing to compute: no tokens, or no answer is wanted
  kTooLong,        // the request can never fit the context or the memory
  kTooManyCopies,  // more answers to one request than run at once
  kQueueFull,      // try again later
};
// The request was never accepted: no other action names it.
struct Rejected {
  RequestId request = 0;
  Refusal why = Refusal::kEmpty;
  int64_t retry_after_s = 0;  // 0: trying again is no use
};
// Send Timer at this time. Replaces the time before; kNever: send none.
struct SetTimer {
  int64_t at_us = kNever;
};

template <typename Event, typename Action>
class Batcher {
 public:
  virtual ~Batcher() = default;
  // REQUIRES: now_us never falls.
  virtual void OnEvent(const Event& event, int64_t now_us, std::vector<Action>* actions) = 0;
};

}  // namespace scheduler::batching
