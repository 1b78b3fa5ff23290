// What the parts of a front stand on: descriptors to watch, timers, and the time. A front has one
// loop. All parts of the front are called from the loop, and need no locks. Tests give the
// parts a loop with a time of its own.
//
// Thread safety: the loop's thread alone. Callbacks may add and remove anything, themselves
// included; what is removed is not called any more.
#pragma once

#include <cstdint>
#include <functional>

namespace serve {

class EventLoop {
 public:
  using TimerId = uint64_t;  // never used again; 0 is none
  // `seen`: of POLLIN, POLLOUT, POLLHUP, ... (poll(2)).
  using OnDescriptor = std::function<void(short seen)>;
  using OnTimer = std::function<void()>;

  virtual ~EventLoop() = default;

  // Microseconds of a clock that never goes back.
  virtual int64_t NowUs() const = 0;

  // Calls `call` whenever one of `wanted` (POLLIN, POLLOUT), or an error or a hang-up, is there.
  // Replaces what was asked for the descriptor before. REQUIRES: removed before it is closed.
  virtual void AddDescriptor(int descriptor, short wanted, OnDescriptor call) = 0;
  // Ignored for a descriptor that is not watched.
  virtual void RemoveDescriptor(int descriptor) = 0;

  // Calls `call` once, at this time or soon after it; never before AddTimer has returned.
  virtual TimerId AddTimer(int64_t at_us, OnTimer call) = 0;
  // Ignored for a timer that has been called or cancelled.
  virtual void CancelTimer(TimerId timer) = 0;
};

}  // namespace serve
