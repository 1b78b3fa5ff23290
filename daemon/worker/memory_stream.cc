#include "daemon/worker/memory_stream.h"

#include "daemon/worker/poll_device.h"
#include "ipc/driver_table.h"

namespace worker {

MemoryStream::MemoryStream(const Environment& environment, int device) : environment_(environment) {
  const ipc::DriverTable& driver = *environment.driver;
  if (static_cast<size_t>(device) < environment.contexts.size()) {
    pushed_ = driver.cuCtxPushCurrent_v2(environment.contexts[static_cast<size_t>(device)]) ==
              CUDA_SUCCESS;
  }
  status_ = driver.cuStreamCreateWithPriority(&stream_, CU_STREAM_NON_BLOCKING, 0);
}

MemoryStream::~MemoryStream() {
  if (stream_ != nullptr) environment_.driver->cuStreamDestroy_v2(stream_);
  CUcontext popped = nullptr;
  if (pushed_) environment_.driver->cuCtxPopCurrent_v2(&popped);
}

CUresult MemoryStream::Clear(CUdeviceptr address, uint64_t bytes) {
  return environment_.driver->cuMemsetD8Async(address, 0, bytes, stream_);
}

CUresult MemoryStream::Wait() {
  CUresult result = CUDA_SUCCESS;
  PollDevice([&] {
    result = environment_.driver->cuStreamQuery(stream_);
    return result != CUDA_ERROR_NOT_READY;
  });
  return result;
}

}  // namespace worker
