// The session's pinned window: addresses behind the device arena that map the session's pinned
// file, here and in the worker alike.
//
// Ranges are whole pages, given first fit; a freed range loses its pages at once. The window was
// mapped without access when the session began, so no descriptor is needed. Thread safety: all
// methods.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "ipc/calls/vendor.h"

#include "base/mutex.h"
#include "shim/lock_order.h"

namespace shim {

class PinnedWindow {
 public:
  static PinnedWindow& Process();

  // Writable, zeroed, backed by memory now: a full machine is an error here, not a SIGBUS later.
  CUresult Take(size_t bytes, uint64_t* address, size_t* taken_bytes);
  void Give(uint64_t address, size_t taken_bytes);

 private:
  bool FindRoom(size_t bytes, uint64_t* address) REQUIRES(mutex_);

  base::Mutex mutex_ ACQUIRED_AFTER(lock_order::kKeeping);
  uint64_t end_ GUARDED_BY(mutex_) = 0;  // of the part ever used; 0: nothing yet
  std::map<uint64_t, uint64_t> free_bytes_ GUARDED_BY(mutex_);  // by address, merged
};

}  // namespace shim
