#include "daemon/worker/call_handlers/session_handler.h"

#include "daemon/worker/device_description.h"

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

}  // namespace worker
