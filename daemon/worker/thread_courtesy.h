// How a session's thread behaves beside a software device, which works on the same processors.
//
// A message's arrival would interrupt the kernel that it comes after, or its own program. So
// messages gather until the device has nothing to do, or another processor is free. Runs of
// launches do not: each is much work, for which the device may be waiting. A client that
// has waited for the device waits for this thread next, to copy a result, and the thread is not to
// wait for a whole slice of another program's then. Thread safety: any thread, after Begin().
#pragma once

#include <sched.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>

namespace worker {

class ThreadCourtesy {
 public:
  // Without a device on the processors it does nothing.
  explicit ThreadCourtesy(bool on_processors) : on_processors_(on_processors) {}
  ThreadCourtesy(const ThreadCourtesy&) = delete;

  // On the session's thread.
  void Begin() { thread_id_ = gettid(); }
  // Has the session's thread, when a message wakes it, leave the processor to the thread that has
  // it (SCHED_BATCH), or no longer.
  void GiveWay(bool gives) {
    if (!on_processors_ || gives_way_.exchange(gives) == gives) return;
    const sched_param none{};
    // When the system refuses, the thread goes on as before.
    sched_setscheduler(thread_id_, gives ? SCHED_BATCH : SCHED_OTHER, &none);
  }

 private:
  const bool on_processors_;
  pid_t thread_id_ = 0;
  std::atomic<bool> gives_way_{false};
};

}  // namespace worker
