#include "daemon/common/event_loop.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "ipc/futex.h"

namespace common {
namespace {

constexpr int kEventsAtOnce = 64;

}  // namespace

EventLoop::EventLoop() : epoll_(epoll_create1(EPOLL_CLOEXEC)) { assert(epoll_.valid()); }

void EventLoop::Watch(int fd, Handler handler) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  const int result = epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  assert(result == 0);
  (void)result;
  handlers_[fd] = std::make_shared<Handler>(std::move(handler));
}

void EventLoop::Unwatch(int fd) {
  if (handlers_.erase(fd) != 0) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

EventLoop::TimerId EventLoop::After(int64_t delay_us, Handler handler) {
  const TimerId id = next_timer_++;
  timers_.emplace(ipc::MonotonicNs() + delay_us * 1000, Timer{id, std::move(handler)});
  return id;
}

void EventLoop::Cancel(TimerId timer) {
  for (auto entry = timers_.begin(); entry != timers_.end(); ++entry) {
    if (entry->second.id != timer) continue;
    timers_.erase(entry);
    return;
  }
}

int EventLoop::WaitMs() const {
  if (timers_.empty()) return -1;
  const int64_t left_ns = timers_.begin()->first - ipc::MonotonicNs();
  return left_ns <= 0 ? 0 : static_cast<int>(std::min<int64_t>(left_ns / 1'000'000 + 1, 1 << 30));
}

void EventLoop::RunDueTimers() {
  const int64_t now = ipc::MonotonicNs();
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const Handler handler = std::move(timers_.begin()->second.handler);
    timers_.erase(timers_.begin());
    handler();
  }
}

void EventLoop::RunOnce() {
  epoll_event events[kEventsAtOnce];
  const int count = epoll_wait(epoll_.get(), events, kEventsAtOnce, WaitMs());
  for (int i = 0; i < count; ++i) {
    // An earlier handler of this round may have removed it, or made a new one with the same number:
    // that one then finds nothing to read, which every handler allows.
    const std::map<int, std::shared_ptr<Handler>>::iterator found =
        handlers_.find(events[i].data.fd);
    if (found == handlers_.end()) continue;
    const std::shared_ptr<Handler> handler = found->second;
    (*handler)();
  }
  RunDueTimers();
}

void EventLoop::Run() {
  while (!quit_) RunOnce();
}

}  // namespace common
