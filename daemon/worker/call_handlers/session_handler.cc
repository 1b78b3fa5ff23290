#include "daemon/worker/call_handlers/session_handler.h"

#include "base/mutex.h"
#include "daemon/worker/device_description.h"
#include "ipc/calls/limits.h"

namespace worker {

CUresult SessionHandler::Ping(uint64_t token, uint64_t* echo) {
  *echo = token;
  return CUDA_SUCCESS;
}

CUresult SessionHandler::GetDeviceInfo(CUdevice device, ipc::DeviceInfo* info) {
  return DescribeDevice(held_, device, info);
}

CUresult SessionHandler::ContextReset(CUdevice) {
  reset_();
  return CUDA_SUCCESS;
}

CUresult SessionHandler::Boundary(const ipc::BoundaryInfo* info) {
  const StreamTable::Stream* const last = streams_.last_work();
  iterations_.OnBoundary(*info, last == nullptr ? nullptr : last->driver);
  turn_.OnBoundary();
  return CUDA_SUCCESS;
}

// The heap serves all sessions of the worker: it grows to the largest size that a session has asked
// for, and never shrinks.
CUresult SessionHandler::GrowHeap(size_t bytes) {
  static base::Mutex mutex;  // the limit is the context's, and other sessions have threads too
  if (bytes > ipc::limits::kHeapBytesMax) return CUDA_ERROR_INVALID_VALUE;
  const ipc::DriverTable& driver = *held_.environment.driver;
  const base::MutexLock lock(&mutex);
  size_t now = 0;
  const CUresult result = driver.cuCtxGetLimit(&now, CU_LIMIT_MALLOC_HEAP_SIZE);
  if (result != CUDA_SUCCESS || bytes <= now) return result;
  return driver.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, bytes);
}

}  // namespace worker
