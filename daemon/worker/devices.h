// The worker's GPUs: one context each, and a watch over their health.
//
// An error of a kernel is sticky for the process (CUDA's manual). Sessions meet it in their calls; a client
// that only waits would not, so a thread asks the driver ten times a second while sessions live. The
// driver's error log, where there is one, gives the words. Thread safety: as said at each method.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "daemon/common/driver.h"

namespace worker {

class Devices {
 public:
  using OnFault = std::function<void(CUresult code)>;

  explicit Devices(const common::Driver& driver) : driver_(driver) {}
  ~Devices();

  // cuInit, a context per device, and the error log's callback. The error is a sentence. Once, in main().
  absl::Status Open();
  const std::vector<CUcontext>& contexts() const { return contexts_; }

  // Starts the watching thread; `on_fault` is called on it, once.
  void Watch(OnFault on_fault);
  // The watch sleeps while nobody needs it. Any thread.
  void SetNeeded(bool needed);

  // The last error-level line of the driver's log, empty when there is none. Any thread.
  std::string FaultText() const;

 private:
  static void OnLog(void* self, CUlogLevel level, char* message, size_t length);
  absl::Status OpenDevice(int ordinal);
  CUresult Health();
  void WatchLoop(OnFault on_fault);

  const common::Driver& driver_;
  std::vector<CUcontext> contexts_;
  std::vector<CUstream> probes_;  // a stream of our own per device, never used for work
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::string fault_text_;
  bool needed_ = false;
  bool stopping_ = false;
  std::thread watcher_;
};

}  // namespace worker
