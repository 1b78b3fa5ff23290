// Streams. The handles are the driver's, including those of the default streams.
#include "runtime/api.h"
#include "runtime/driver.h"
#include "runtime/entry.h"

namespace runtime {
namespace {

// Flags and attributes are forwarded by number.
static_assert(cudaStreamNonBlocking == static_cast<int>(CU_STREAM_NON_BLOCKING));
static_assert(cudaEventWaitExternal == static_cast<int>(CU_EVENT_WAIT_EXTERNAL));
static_assert(cudaStreamCaptureModeRelaxed == static_cast<int>(CU_STREAM_CAPTURE_MODE_RELAXED));
static_assert(cudaStreamCaptureStatusInvalidated ==
              static_cast<int>(CU_STREAM_CAPTURE_STATUS_INVALIDATED));

// A callback gets the runtime's name for the status.
struct Callback {
  cudaStreamCallback_t function;
  void* user_data;
};

void RunCallback(CUstream stream, CUresult status, void* data) {
  const Callback callback = *static_cast<Callback*>(data);
  delete static_cast<Callback*>(data);
  callback.function(stream, ToError(status), callback.user_data);
}

}  // namespace

cudaError_t WaitForPerThreadStream() { return Driver().cuStreamSynchronize(cudaStreamPerThread); }

namespace api {

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return Driver().cuStreamCreate(stream, CU_STREAM_DEFAULT);
}

// Null names the default stream everywhere else; here it is no stream that could be destroyed.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return stream == nullptr ? cudaErrorInvalidResourceHandle : Driver().cuStreamDestroy_v2(stream);
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function,
                                  void* user_data, unsigned flags) {
  if (function == nullptr) return cudaErrorInvalidValue;
  Callback* const callback = new Callback{function, user_data};
  const cudaError_t error = Driver().cuStreamAddCallback(stream, &RunCallback, callback, flags);
  if (error != cudaSuccess) delete callback;
  return error;
}

}  // namespace api
}  // namespace runtime
