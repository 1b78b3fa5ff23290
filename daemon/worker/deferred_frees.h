// Device blocks that the program has freed while the device may still use them.
//
// cuMemFree waits for the device in CUDA; a session's thread never does. So a block is kept until
// the events recorded behind the work of that moment are complete; Poll() looks. An allocation that
// does not fit waits for them (Session). Thread safety: one session's thread.
#pragma once

#include <deque>
#include <vector>

#include "daemon/worker/arena.h"
#include "daemon/worker/session.h"
#include "daemon/worker/streams.h"

namespace worker {

class DeferredFrees {
 public:
  DeferredFrees(const Environment& environment, Arena* arena)
      : environment_(environment), arena_(arena) {}
  ~DeferredFrees();
  DeferredFrees(const DeferredFrees&) = delete;

  // Frees the block once `after` have finished what they have now; at once when all are idle.
  CUresult Free(CUdeviceptr address, const std::vector<StreamTable::Stream*>& after);
  // Frees what is no longer used; false when something still is.
  bool Poll();
  // Forgets the blocks: the arena is about to free everything.
  void Clear();

 private:
  struct Pending {
    CUdeviceptr address;
    std::vector<CUevent> events;
  };
  const Environment& environment_;
  Arena* const arena_;
  std::deque<Pending> pending_;
  std::vector<CUevent> spare_events_;
};

}  // namespace worker
