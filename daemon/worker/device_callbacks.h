// What a session does when the device has finished with a stream.
//
// A driver's callback is the one documented notice that comes also when the device has failed.
// Streams that the program destroys owe their callbacks still, so a session may end only after
// Wait(). Thread safety: After() and Wait() on the session's thread; tasks run on the driver's.
#pragma once

#include "ipc/calls/vendor.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "daemon/worker/session.h"

namespace worker {

class DeviceCallbacks {
 public:
  explicit DeviceCallbacks(const Environment& environment) : environment_(environment) {}
  DeviceCallbacks(const DeviceCallbacks&) = delete;

  // Runs on the driver's thread, so it may call no driver function. It lives as long as a callback
  // for it is owed.
  class Task {
   public:
    Task(DeviceCallbacks* callbacks, std::function<void()> run)
        : callbacks_(*callbacks), run_(std::move(run)) {}
    Task(const Task&) = delete;

   private:
    friend class DeviceCallbacks;
    DeviceCallbacks& callbacks_;
    const std::function<void()> run_;
  };

  // Runs the task once the device has done what is on the stream, or has failed.
  CUresult After(CUstream stream, Task* task);
  // Returns when no callback is owed.
  void Wait() const;

 private:
  static void CUDA_CB Run(CUstream stream, CUresult status, void* task);

  const Environment& environment_;
  std::atomic<uint32_t> owed_{0};
};

}  // namespace worker
