// What sending and waiting ask of the session when the ordinary path ends: its worker may have been
// replaced, or be gone.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstdint>

namespace shim {

// How long a wait goes on at most without a look at the session.
inline constexpr int64_t kNapUs = 100'000;

class Upkeep {
 public:
  virtual ~Upkeep() = default;

  // Another worker has taken the session over: tells it what is alive. REQUIRES: the send lock.
  virtual CUresult RebuildLocked() = 0;
  // The same by a thread that does not hold the send lock. Does nothing when another
  // thread holds the lock: that thread rebuilds, too, before it waits for room.
  virtual void TryRebuild() = 0;
  // Whether a worker has to be told, and no thread has begun.
  virtual bool NeedsRebuild() const = 0;
  // After a nap that ended without news: marks the session lost when its worker is gone.
  virtual void CheckWorker() = 0;
  // The code of the lost session, which is explained once on stderr. REQUIRES: it is lost.
  virtual CUresult Lost() = 0;
};

}  // namespace shim
