// What the device says of a session's streams, and how the session's client hears of it. These
// three stand in for no state of the session, and several of its parts use them. Thread safety: as
// the parts say.
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
