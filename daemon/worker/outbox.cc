#include "daemon/worker/outbox.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cassert>
#include <utility>

namespace worker {

Outbox::Outbox(common::EventLoop* loop, std::function<void()> on_posted)
    : loop_(*loop), event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  assert(event_.valid());
  loop_.Watch(event_.get(), std::move(on_posted));
}

Outbox::~Outbox() { loop_.Unwatch(event_.get()); }

void Outbox::Post(const ipc::control::WorkerToDaemon& message) {
  {
    const base::MutexLock lock(&mutex_);
    messages_.push_back(message);
  }
  const uint64_t one = 1;
  if (write(event_.get(), &one, sizeof one) < 0) {
    // The counter is full only when the loop has not run for 2^64 messages.
    assert(false);
  }
}

std::vector<ipc::control::WorkerToDaemon> Outbox::Take() {
  uint64_t count = 0;
  if (read(event_.get(), &count, sizeof count) < 0) return {};
  const base::MutexLock lock(&mutex_);
  return std::exchange(messages_, {});
}

}  // namespace worker
