// Which worker tells a new keeper of a lane's extents.
//
// Several workers have a lane, and only a worker with a session inside knows for sure which extents
// the lane has: the others may not have heard of its last change. So a new keeper is told of a
// lane's extents by that worker alone. The other workers give up what they have of the lane, and
// look again. The worker of the first session that enters since the keeper came claims the lane.
// From then on the keeper takes none of the lane's extents from another worker: that worker's
// session was inside before, and its hand-over is late. No worker ever waits for another worker.
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
  // The worker has asked the keeper for the lane's extents, and a session is inside from now on.
  // False: another keeper has come since Take(). The caller begins again with Take().
  bool Enter();
  void Exit();
  // Another keeper serves. True: a session is inside, so this worker hands the lane over.
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

// True when a worker hands the owner's extents over. `lanes`: those with a session inside.
bool SpeaksFor(const ipc::control::Owner& owner, const std::set<uint64_t>& lanes);

}  // namespace worker
