// Streams and events. The handles are the driver's, including those of the default streams.
#include "runtime/api.h"
#include "runtime/driver.h"
#include "runtime/entry.h"

namespace runtime {
namespace {

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

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return Driver().cuEventCreate(event, CU_EVENT_DEFAULT);
}

}  // namespace api
}  // namespace runtime
