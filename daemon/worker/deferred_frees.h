// What the program has freed while the device may still use it.
//
// cuMemFree waits for the device in CUDA; a session's thread never does. So memory is kept until
// the events recorded behind the work of that moment are complete; Poll() looks. A request that
// does not fit waits for them (Session). Thread safety: one session's thread.
#pragma once

#include <deque>
#include <functional>
#include <vector>

#include "daemon/worker/session.h"
#include "daemon/worker/streams.h"

namespace worker {

class DeferredFrees {
 public:
  explicit DeferredFrees(const Environment& environment) : environment_(environment) {}
  ~DeferredFrees();
  DeferredFrees(const DeferredFrees&) = delete;

  // Frees once `after` have finished what they have now; at once when all are idle.
  CUresult Free(const std::vector<StreamTable::Stream*>& after, std::function<void()> free);
  // Frees what is no longer used; false when something still is.
  bool Poll();
  // Forgets all: the arena is about to free everything.
  void Clear();

 private:
  struct Pending {
    std::function<void()> free;
    std::vector<CUevent> events;
  };
  const Environment& environment_;
  std::deque<Pending> pending_;
  std::vector<CUevent> spare_events_;
};

}  // namespace worker
