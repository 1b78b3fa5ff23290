// Messages to lanewayd that any thread posts, and that the loop's thread sends in this order.
// Thread safety: Post() from any thread, the rest on the loop's.
#pragma once

#include <functional>
#include <vector>

#include "base/mutex.h"
#include "daemon/common/event_loop.h"
#include "ipc/control.h"
#include "ipc/unique_fd.h"

namespace worker {

class Outbox {
 public:
  // `loop` outlives this object. `on_posted` runs there after messages were posted, and takes them.
  Outbox(common::EventLoop* loop, std::function<void()> on_posted);
  ~Outbox();
  Outbox(const Outbox&) = delete;

  void Post(const ipc::control::WorkerToDaemon& message);
  // What was posted since the last call.
  std::vector<ipc::control::WorkerToDaemon> Take();

 private:
  common::EventLoop& loop_;
  const ipc::UniqueFd event_;
  base::Mutex mutex_;
  std::vector<ipc::control::WorkerToDaemon> messages_ GUARDED_BY(mutex_);
};

}  // namespace worker
