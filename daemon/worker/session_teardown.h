// In which order a session's resources go: when it ends, when another worker takes it over, and
// when its program resets the device.
//
// An end does not wait for other sessions. Streams, events, device memory with its addresses and
// the lane go at once, by calls that CUDA documents as not waiting. Modules, library handles and
// registrations of host memory go to the reaper, since the driver may wait for the whole context
// there. So a session that is still here after its program has work of its own on the device.
//
// Thread safety: Stop() is for any one other thread, the rest is the session's thread's.
#pragma once

#include "daemon/worker/call_handlers/call_handlers.h"
#include "daemon/worker/holdings.h"
#include "daemon/worker/iterations.h"
#include "daemon/worker/lane_executor.h"
#include "daemon/worker/lane_membership.h"
#include "daemon/worker/registered_file.h"
#include "daemon/worker/stream_drain.h"
#include "daemon/worker/stream_notices.h"

namespace worker {

class SessionTeardown {
 public:
  // The rest of the session. All outlive this object.
  struct Surroundings {
    Holdings* held;
    CallHandlers* handlers;
    Iterations* iterations;
    LaneMembership* lane;
    LaneExecutor* turn;
    StreamNotices* notices;
    RegisteredFile* file;
  };
  explicit SessionTeardown(const Surroundings& around)
      : around_(around), drain_(around.held->environment, around.file->get()) {}
  SessionTeardown(const SessionTeardown&) = delete;

  // The values that the session's streams wait for.
  OpenWaits* waits() { return drain_.waits(); }
  // The session's program is gone: its streams wait for it no more, also while the session's thread
  // is inside the driver.
  void Stop() { drain_.Stop(); }

  // Waits for the device, then gives back everything.
  void End();
  // Lets go of everything. Device memory, pinned memory and the files stay for the successor.
  // REQUIRES: the session is quiet.
  void LeaveToSuccessor();
  // Waits for the device, then gives back what the program has made. The session goes on: it enters
  // its lane anew before its next work.
  void Reset();

 private:
  void AwaitDevice();
  void DestroyObjects();

  const Surroundings around_;
  StreamDrain drain_;
};

}  // namespace worker
