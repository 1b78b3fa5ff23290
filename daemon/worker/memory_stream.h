// A stream of the worker's own, beside the sessions': clears and moves memory while others compute.
//
// Thread safety: one thread, whose current context is the device's while this object lives. It
// never calls a driver function that waits for the device.
#pragma once

#include <cstdint>

#include "daemon/worker/session.h"

namespace worker {

class MemoryStream {
 public:
  MemoryStream(const Environment& environment, int device);
  ~MemoryStream();  // REQUIRES: Wait() since the last use
  MemoryStream(const MemoryStream&) = delete;

  // The result of its creation; nothing below may be called unless it is 0.
  CUresult status() const { return status_; }
  CUstream get() const { return stream_; }
  CUresult Clear(CUdeviceptr address, uint64_t bytes);
  // Until all that was submitted is complete. The device's error, if that ended it.
  CUresult Wait();

 private:
  const Environment& environment_;
  bool pushed_ = false;
  CUstream stream_ = nullptr;
  CUresult status_ = CUDA_SUCCESS;
};

}  // namespace worker
