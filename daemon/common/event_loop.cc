#include "daemon/common/event_loop.h"

#include <poll.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <utility>

namespace common {
namespace {

constexpr int kEventsAtOnce = 64;

bool IsReadable(int fd) {
  pollfd entry{fd, POLLIN, 0};
  return poll(&entry, 1, 0) == 1;
}

}  // namespace

EventLoop::EventLoop(EpollControl control, Clock clock)
    : control_(control), clock_(clock), epoll_(epoll_create1(EPOLL_CLOEXEC)) {
  assert(epoll_.valid());
}

void EventLoop::Watch(int fd, Handler handler) {
  const std::shared_ptr<Handler> shared = std::make_shared<Handler>(std::move(handler));
  handlers_[fd] = shared;
  if (!Add(fd)) AddLater(fd, shared);
}

bool EventLoop::Add(int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (control_(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0) return true;
  // The programs of the user can use up the memory, and the number of descriptors that all
  // processes of the user may watch (fs.epoll.max_user_watches). Any other error is a mistake of
  // this process.
  assert(errno == ENOSPC || errno == ENOMEM);
  return false;
}

// Until the timer fires, the watch may have ended, and a new one of the same number may have begun.
void EventLoop::AddLater(int fd, const std::shared_ptr<Handler>& handler) {
  After(kRetryUs, [this, fd, handler] {
    const std::map<int, std::shared_ptr<Handler>>::iterator found = handlers_.find(fd);
    if (found == handlers_.end() || found->second != handler) return;
    if (Add(fd)) return;  // epoll reports in the next round that it is readable
    AddLater(fd, handler);
    if (IsReadable(fd)) (*handler)();
  });
}

void EventLoop::Unwatch(int fd) {
  // The deletion fails for a descriptor that was never added, which does no harm.
  if (handlers_.erase(fd) != 0) control_(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

EventLoop::TimerId EventLoop::After(int64_t delay_us, Handler handler) {
  const TimerId id = next_timer_++;
  timers_.emplace(clock_() + delay_us * 1000, Timer{id, std::move(handler)});
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
  const int64_t left_ns = timers_.begin()->first - clock_();
  return left_ns <= 0 ? 0 : static_cast<int>(std::min<int64_t>(left_ns / 1'000'000 + 1, 1 << 30));
}

void EventLoop::HandleAsEvent(const Handler& handler) const {
  handler();
  if (after_each_) after_each_();
}

void EventLoop::RunDueTimers() {
  const int64_t now = clock_();
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const Handler handler = std::move(timers_.begin()->second.handler);
    timers_.erase(timers_.begin());
    HandleAsEvent(handler);
  }
}

void EventLoop::HandleWithin(int wait_ms) {
  epoll_event events[kEventsAtOnce];
  const int count = epoll_wait(epoll_.get(), events, kEventsAtOnce, wait_ms);
  for (int i = 0; i < count; ++i) {
    // An earlier handler of this round may have removed this handler, or may have added another one
    // for the same number. The new handler finds nothing to read, which every handler allows.
    const std::map<int, std::shared_ptr<Handler>>::iterator found =
        handlers_.find(events[i].data.fd);
    if (found == handlers_.end()) continue;
    const std::shared_ptr<Handler> handler = found->second;
    HandleAsEvent(*handler);
  }
  RunDueTimers();
}

void EventLoop::Run() {
  while (!quit_) RunOnce();
}

}  // namespace common
