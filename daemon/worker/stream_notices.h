// How the device's progress on a session's streams reaches the session and its client: callbacks,
// the client's bell, and the priority of the session's thread. Several parts of a session use them.
// Thread safety: as the parts say.
#pragma once

#include "daemon/worker/client_bell.h"
#include "daemon/worker/device_callbacks.h"
#include "daemon/worker/session.h"
#include "daemon/worker/thread_courtesy.h"

namespace worker {

struct StreamNotices {
  // Both outlive this object.
  StreamNotices(const Environment& environment, ipc::SessionFile* file)
      : courtesy(environment.on_processors),
        callbacks(environment),
        bell(environment, file, &callbacks, &courtesy) {}
  StreamNotices(const StreamNotices&) = delete;

  ThreadCourtesy courtesy;
  DeviceCallbacks callbacks;
  ClientBell bell;
};

}  // namespace worker
