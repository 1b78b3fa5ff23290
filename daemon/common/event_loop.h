// The loop that every daemon process waits in: descriptors and timers of one thread.
//
// A handler may add and remove anything, its own descriptor too. Descriptors are level-triggered.
// When the system refuses to watch one more descriptor for lack of room, the loop polls that
// descriptor itself, every kRetryUs, until the system accepts it.
// Thread safety: one thread; other threads reach the loop through an eventfd that it watches.
#pragma once

#include <sys/epoll.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "ipc/futex.h"
#include "ipc/unique_fd.h"

namespace common {

class EventLoop {
 public:
  using Handler = std::function<void()>;
  using TimerId = uint64_t;
  using EpollControl = int (*)(int epoll, int operation, int fd, epoll_event* event);
  // A monotonic time in nanoseconds.
  using Clock = int64_t (*)();
  static constexpr int64_t kRetryUs = 20'000;

  // Timers are due by `clock`.
  explicit EventLoop(EpollControl control = &epoll_ctl, Clock clock = &ipc::MonotonicNs);

  // Calls `handler` whenever fd is readable or at its end. The descriptor stays the caller's, who
  // removes it here before closing it.
  void Watch(int fd, Handler handler);
  void Unwatch(int fd);

  TimerId After(int64_t delay_us, Handler handler);
  void Cancel(TimerId timer);

  // Calls `handler` after each call of a handler or timer. One at a time; null: none.
  void AfterEach(Handler handler) { after_each_ = std::move(handler); }
  // Calls `handler` as an event of the loop that no descriptor and no timer brought. Not from
  // within another event.
  void HandleAsEvent(const Handler& handler) const;

  // Waits for one round of events, or timers that are due, and handles them.
  void RunOnce() { HandleWithin(WaitMs()); }
  // The same without waiting: handles what is ready or due now.
  void HandleReady() { HandleWithin(0); }
  // Until Quit().
  void Run();
  void Quit() { quit_ = true; }

 private:
  struct Timer {
    TimerId id;
    Handler handler;
  };
  bool Add(int fd);  // false: the system has no room
  void AddLater(int fd, const std::shared_ptr<Handler>& handler);
  int WaitMs() const;
  void HandleWithin(int wait_ms);
  void RunDueTimers();

  const EpollControl control_;
  const Clock clock_;
  ipc::UniqueFd epoll_;
  bool quit_ = false;
  Handler after_each_;
  TimerId next_timer_ = 1;
  std::map<int, std::shared_ptr<Handler>> handlers_;
  std::multimap<int64_t, Timer> timers_;  // by due time of the clock, ns
};

}  // namespace common
