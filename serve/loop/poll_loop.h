// The event loop of a front over poll(2): its descriptors are few, and those of HTTP connections
// are libmicrohttpd's. Thread safety: one thread.
#pragma once

#include <poll.h>

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "serve/loop/event_loop.h"

namespace serve {

class PollLoop final : public EventLoop {
 public:
  int64_t NowUs() const override;
  void AddDescriptor(int descriptor, short wanted, OnDescriptor call) override;
  void RemoveDescriptor(int descriptor) override;
  TimerId AddTimer(int64_t at_us, OnTimer call) override;
  void CancelTimer(TimerId timer) override;

  // Calls `call` each time before the loop waits: for what a callback may have left to do.
  void SetBeforeWait(std::function<void()> call) { before_wait_ = std::move(call); }
  // Until Stop().
  void Run();
  void Stop() { stopped_ = true; }

 private:
  struct Watch {
    short wanted = 0;
    uint64_t number = 0;  // of this AddDescriptor: a descriptor's number may come again
    std::shared_ptr<OnDescriptor> call;
  };

  void Turn();
  void CallTimers();
  int WaitMs() const;

  std::map<int, Watch> watches_;
  std::map<std::pair<int64_t, TimerId>, OnTimer> timers_;  // by time
  std::map<TimerId, int64_t> times_;
  uint64_t last_watch_ = 0;
  TimerId last_timer_ = 0;
  std::function<void()> before_wait_;
  bool stopped_ = false;
};

}  // namespace serve
