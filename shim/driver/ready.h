// The first checks of most driver calls: a session, and the device's number. Thread safety: any
// thread.
#pragma once

#include "ipc/calls/vendor.h"
#include "shim/client.h"
#include "shim/devices.h"

namespace local {

// Starts the session where the process has none yet: its error when it can't be had.
inline CUresult Ready() { return shim::Client::Process().Ready(); }

// The same, then the position of `device` among the session's devices.
inline CUresult OrdinalOf(CUdevice device, int* ordinal) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  return shim::Devices::Process().Ordinal(device, ordinal);
}

}  // namespace local
