#include "serve/loop/poll_loop.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace serve {

int64_t PollLoop::NowUs() const {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void PollLoop::AddDescriptor(int descriptor, short wanted, OnDescriptor call) {
  watches_[descriptor] = {wanted, ++last_watch_, std::make_shared<OnDescriptor>(std::move(call))};
}

void PollLoop::RemoveDescriptor(int descriptor) { watches_.erase(descriptor); }

EventLoop::TimerId PollLoop::AddTimer(int64_t at_us, OnTimer call) {
  const TimerId timer = ++last_timer_;
  timers_.emplace(std::pair(at_us, timer), std::move(call));
  times_.emplace(timer, at_us);
  return timer;
}

void PollLoop::CancelTimer(TimerId timer) {
  const std::map<TimerId, int64_t>::iterator found = times_.find(timer);
  if (found == times_.end()) return;
  timers_.erase({found->second, timer});
  times_.erase(found);
}

void PollLoop::Run() {
  stopped_ = false;
  while (!stopped_) Turn();
}

// Rounded up: a timer that is called too early would be set again and again.
int PollLoop::WaitMs() const {
  if (timers_.empty()) return -1;
  const int64_t wait_us = std::max<int64_t>(0, timers_.begin()->first.first - NowUs());
  return static_cast<int>(
      std::min<int64_t>((wait_us + 999) / 1000, std::numeric_limits<int>::max()));
}

void PollLoop::Turn() {
  if (before_wait_) before_wait_();
  std::vector<pollfd> entries;
  std::vector<uint64_t> numbers;
  for (const auto& [descriptor, watch] : watches_) {
    entries.push_back({descriptor, watch.wanted, 0});
    numbers.push_back(watch.number);
  }
  const int seen = poll(entries.data(), entries.size(), WaitMs());
  for (size_t i = 0; seen > 0 && i < entries.size() && !stopped_; ++i) {
    if (entries[i].revents == 0) continue;
    const std::map<int, Watch>::iterator found = watches_.find(entries[i].fd);
    if (found == watches_.end() || found->second.number != numbers[i]) continue;
    const std::shared_ptr<OnDescriptor> call = found->second.call;  // it may remove itself
    (*call)(entries[i].revents);
  }
  if (!stopped_) CallTimers();
}

// Timers that are added meanwhile wait for the next turn, so that descriptors have theirs.
void PollLoop::CallTimers() {
  const int64_t now_us = NowUs();
  const TimerId last = last_timer_;
  while (!timers_.empty() && !stopped_) {
    const auto first = timers_.begin();
    if (first->first.first > now_us || first->first.second > last) return;
    const OnTimer call = std::move(first->second);
    times_.erase(first->first.second);
    timers_.erase(first);
    call();
  }
}

}  // namespace serve
