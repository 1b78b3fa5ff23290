#include "daemon/worker/device_callbacks.h"

#include "daemon/worker/poll_device.h"
#include "daemon/worker/session_life.h"

namespace worker {

CUresult DeviceCallbacks::After(CUstream stream, Task* task) {
  owed_.fetch_add(1);
  const CUresult result = environment_.driver->cuStreamAddCallback(stream, &Run, task, 0);
  if (result != CUDA_SUCCESS) owed_.fetch_sub(1);
  return result;
}

void CUDA_CB DeviceCallbacks::Run(CUstream, CUresult status, void* task) {
  const Task& due = *static_cast<const Task*>(task);
  DeviceCallbacks& callbacks = due.callbacks_;
  if (IsSticky(status)) callbacks.environment_.poison->OnPoisoned(0, status, "");
  due.run_();
  callbacks.owed_.fetch_sub(1);  // the last access: the session may end now
}

void DeviceCallbacks::Wait() const {
  PollDevice([this] { return owed_.load() == 0; });
}

}  // namespace worker
