// The devices that the program may see, and what never changes about them, fetched once each.
//
// CUDA_VISIBLE_DEVICES is read as the driver reads it: a list of ordinals, which ends at the first
// ordinal without a device. A program's CUdevice is an index into that list; `ordinal` is the
// worker's number. Thread safety: all methods.
#pragma once

#include <vector>

#include "base/mutex.h"
#include "ipc/calls/laneway_calls.h"
#include "shim/lock_order.h"

namespace shim {

class Devices {
 public:
  static Devices& Process();

  // REQUIRES: the client is connected.
  int Count();
  // 101 when the program has no such device.
  CUresult Ordinal(CUdevice device, int* ordinal);
  // The program's number of a worker's device.
  CUdevice Visible(int ordinal);
  // What the device can do, as a session sees it: promises that a process border breaks read 0.
  CUresult Info(int ordinal, const ipc::DeviceInfo** info);

 private:
  void Read() REQUIRES(mutex_);

  base::Mutex mutex_ ACQUIRED_BEFORE(lock_order::kSending);
  bool read_ GUARDED_BY(mutex_) = false;
  std::vector<int> visible_ GUARDED_BY(mutex_);
  struct Entry {
    bool fetched = false;
    ipc::DeviceInfo info;
  };
  std::vector<Entry> entries_ GUARDED_BY(mutex_);  // by ordinal; sized once
};

}  // namespace shim
