// The resources of one session in the worker: device memory, arrays, pinned host memory, streams,
// and ranges that the program has freed while the device may still use them. Each part has its own
// header; this object makes them together, in the order of their needs. Thread safety: one
// session's thread.
#pragma once

#include "daemon/worker/arena.h"
#include "daemon/worker/array_memory.h"
#include "daemon/worker/deferred_frees.h"
#include "daemon/worker/own_addresses.h"
#include "daemon/worker/pinned.h"
#include "daemon/worker/seen_devices.h"
#include "daemon/worker/streams.h"
#include "ipc/unique_fd.h"

namespace worker {

struct Holdings {
  // `owner` outlives this object; the setup's pinned_fd and swap_fd are taken over.
  Holdings(const Environment& environment, const SessionSetup& setup, StreamOwner* owner);
  Holdings(const Holdings&) = delete;

  // True when the device has done everything that the session gave it, or has failed.
  bool StreamsIdle();
  // True when the device has done all work of the session's streams, and has not failed.
  bool StreamsComplete();

  const Environment& environment;
  const SeenDevices seen_devices;
  Arena arena;
  ArrayMemory arrays;
  PinnedMemory pinned;
  OwnAddresses addresses;
  StreamTable streams;
  DeferredFrees frees;

 private:
  Holdings(const Environment& environment, const SessionSetup& setup, StreamOwner* owner,
           const Tenant& tenant);
};

}  // namespace worker
