// What a worker's picture of a lane is worth to a new keeper.
//
// Several workers have a lane, and only a worker with a session inside knows for sure which extents
// the lane has: the others may not have heard of its last change. So a new keeper is told of a
// lane's extents by that worker alone. The other workers give up what they have of the lane, and
// look again. A worker whose session is the first to enter since the keeper came claims the lane:
// the keeper then takes none of the lane's extents from a session's worker that was inside before,
// and is late. No worker ever waits for another one.
//
// Thread safety: all methods from any thread. LaneClaim takes no lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>

#include "base/mutex.h"
#include "ipc/control_extents.h"

namespace worker {

// Of one lane.
class LaneClaim {
 public:
  // A session is to enter. True: it is the worker's first since the keeper came, which is to be
  // said to the keeper and to the other workers.
  bool Take();
  // What the keeper knows of the lane was looked at: a session is inside from now on. False:
  // another keeper came since Take(), which is to be called again.
  bool Enter();
  void Exit();
  // Whether a session is inside, so that this worker speaks for the lane.
  bool OnNewKeeper();

 private:
  enum class Standing { kNone, kTaken, kInside };
  std::atomic<Standing> standing_{Standing::kNone};
};

class LaneClaims {
 public:
  // While any owner of it lives, the same for all.
  std::shared_ptr<LaneClaim> Of(uint64_t lane);
  // Another keeper serves: the lanes for which this worker speaks.
  std::set<uint64_t> OnNewKeeper();

 private:
  base::Mutex mutex_;
  std::map<uint64_t, std::weak_ptr<LaneClaim>> claims_ GUARDED_BY(mutex_);
};

// Whether the owner's extents are handed over by a worker that speaks for these lanes.
bool SpeaksFor(const ipc::control::Owner& owner, const std::set<uint64_t>& lanes);

}  // namespace worker
