// A thread for driver calls that may wait for the whole context.
//
// In a shared context such a call waits for every session's work, though only one session's things
// go: unregistering host memory, unloading a module, ending a library's handle. A session's thread
// leaves them here, so that neither its calls nor its end wait for others. Thread safety: any
// thread.
#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "daemon/worker/session.h"

namespace worker {

class Reaper {
 public:
  // `begin` runs first on its thread: what makes a context current.
  explicit Reaper(std::function<void()> begin);
  // Waits until all is done.
  ~Reaper();
  Reaper(const Reaper&) = delete;

  // Returns at once; jobs are done one after the other.
  void Later(std::function<void()> job);

 private:
  void Serve(const std::function<void()>& begin);

  absl::Mutex mutex_;
  std::deque<std::function<void()>> jobs_ ABSL_GUARDED_BY(mutex_);
  bool ends_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// The environment's reaper does it; without one, it is done at once.
void Later(const Environment& environment, std::function<void()> job);

}  // namespace worker
