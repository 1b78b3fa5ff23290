// The devices that the program may see, and what never changes about them, fetched once each.
//
// CUDA_VISIBLE_DEVICES is read as the driver reads it: a list of ordinals that ends at the first
// one that does not exist. A program's CUdevice is an index into that list; `ordinal` is the
// worker's number. Thread safety: all methods.
#pragma once

#include <mutex>
#include <vector>

#include "ipc/calls/laneway_calls.h"

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
  void Read();

  std::mutex mutex_;
  bool read_ = false;
  std::vector<int> visible_;
  struct Entry {
    bool fetched = false;
    ipc::DeviceInfo info;
  };
  std::vector<Entry> entries_;  // by ordinal; sized once
};

}  // namespace shim
