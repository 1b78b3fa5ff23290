// The worker's GPUs: one context each, and a watch over their health.
//
// An error of a kernel is sticky for the process (CUDA's manual). Sessions meet it in their calls;
// a client that only waits would not, so a thread asks the driver ten times a second while sessions
// live. The driver's error log, where there is one, gives the words. Thread safety: as said at each
// method.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "daemon/common/driver.h"
#include "daemon/worker/stream_owners.h"

namespace worker {

class Devices {
 public:
  using OnFault = std::function<void(CUresult code)>;

  explicit Devices(const common::Driver& driver) : driver_(driver) {}
  ~Devices();

  // cuInit, a context per device, and the error log's callback. The error is a sentence. Once, in
  // main().
  absl::Status Open();
  const std::vector<CUcontext>& contexts() const { return contexts_; }

  // Starts the watching thread; `on_fault` is called on it, once.
  void Watch(OnFault on_fault);
  // The watch sleeps while it is not needed. Any thread.
  void SetNeeded(bool needed);

  // Sends what kernels print to the session of their stream. The owners outlive the driver's use.
  void RoutePrints(StreamOwners* owners);
  // The driver's sentence about the fault that stopped a kernel; empty when the driver has no
  // sentence. `stream`: the kernel's stream, null when the driver can't tell. Any thread.
  std::string FaultText(CUstream* stream) const;

 private:
  static void OnLog(void* self, CUlogLevel level, char* message, size_t length);
  absl::Status OpenDevice(int ordinal);
  CUresult Health();
  bool AwaitLook();  // until the next look is due; false: there is none
  void WatchLoop(OnFault on_fault);

  const common::Driver& driver_;
  std::vector<CUcontext> contexts_;
  std::vector<CUstream> probes_;  // a stream of our own per device, never used for work
  mutable base::Mutex mutex_;
  base::CondVar changed_;
  std::string fault_text_ GUARDED_BY(mutex_);
  bool needed_ GUARDED_BY(mutex_) = false;
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread watcher_;
};

}  // namespace worker
