// The loop that every daemon process waits in: descriptors and timers of one thread.
//
// A handler may add and remove anything, its own descriptor too. Descriptors are level-triggered.
// Thread safety: one thread; other threads reach the loop through an eventfd that it watches.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "ipc/unique_fd.h"

namespace common {

class EventLoop {
 public:
  using Handler = std::function<void()>;
  using TimerId = uint64_t;

  EventLoop();

  // Calls `handler` whenever fd is readable or at its end. The descriptor stays the caller's, who
  // removes it here before closing it.
  void Watch(int fd, Handler handler);
  void Unwatch(int fd);

  TimerId After(int64_t delay_us, Handler handler);
  void Cancel(TimerId timer);

  // Waits for one round of events, or timers that are due, and handles them.
  void RunOnce();
  // Until Quit().
  void Run();
  void Quit() { quit_ = true; }

 private:
  struct Timer {
    TimerId id;
    Handler handler;
  };
  int WaitMs() const;
  void RunDueTimers();

  ipc::UniqueFd epoll_;
  bool quit_ = false;
  TimerId next_timer_ = 1;
  std::map<int, std::shared_ptr<Handler>> handlers_;
  std::multimap<int64_t, Timer> timers_;  // by due time, CLOCK_MONOTONIC ns
};

}  // namespace common
