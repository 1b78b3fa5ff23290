// A thread for driver calls that may wait for the whole context.
//
// In a shared context such a call waits for the work of every session, although it concerns one
// session only: unregistering host memory, unloading a module, destroying a library handle. The
// session's thread leaves the call to the reaper, so that neither the session's calls nor its end
// wait for other sessions. Thread safety: any thread.
#pragma once

#include <deque>
#include <functional>
#include <thread>

#include "base/mutex.h"
#include "daemon/worker/session.h"

namespace worker {

class Reaper {
 public:
  Reaper();
  // Waits until every job is done.
  ~Reaper();
  Reaper(const Reaper&) = delete;

  // Returns at once; jobs are done one after the other.
  void Later(std::function<void()> job);

 private:
  void Serve();

  base::Mutex mutex_;
  base::CondVar called_;
  std::deque<std::function<void()>> jobs_ GUARDED_BY(mutex_);
  bool ends_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// Hands `job` to the environment's reaper, to run in the context that is current now. Without a
// reaper (in tests) the job runs at once.
void Later(const Environment& environment, std::function<void()> job);

}  // namespace worker
