// Streams. The handles are the driver's, including those of the default streams.
#include "runtime/api.h"
#include "runtime/driver.h"
#include "runtime/entry.h"

namespace runtime {
namespace {

// Flags and attributes are passed on by number.
static_assert(cudaStreamNonBlocking == static_cast<int>(CU_STREAM_NON_BLOCKING));
static_assert(sizeof(cudaStreamAttrValue) == sizeof(CUstreamAttrValue));
static_assert(cudaEventWaitExternal == static_cast<int>(CU_EVENT_WAIT_EXTERNAL));

CUstreamAttrID Id(cudaStreamAttrID id) { return static_cast<CUstreamAttrID>(id); }

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

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return Driver().cuStreamCreate(stream, flags);
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return Driver().cuStreamCreateWithPriority(stream, flags, priority);
}

// Null names the default stream everywhere else; here it is no stream that could be destroyed.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return stream == nullptr ? cudaErrorInvalidResourceHandle : Driver().cuStreamDestroy_v2(stream);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return Driver().cuStreamSynchronize(stream);
}

cudaError_t cudaStreamQuery(cudaStream_t stream) { return Driver().cuStreamQuery(stream); }

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return Driver().cuStreamWaitEvent(stream, event, flags);
}

cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t function,
                                  void* user_data, unsigned flags) {
  if (function == nullptr) return cudaErrorInvalidValue;
  Callback* const callback = new Callback{function, user_data};
  const cudaError_t error = Driver().cuStreamAddCallback(stream, &RunCallback, callback, flags);
  if (error != cudaSuccess) delete callback;
  return error;
}

cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return Driver().cuStreamGetPriority(stream, priority);
}

cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return Driver().cuStreamGetFlags(stream, flags);
}

cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return Driver().cuStreamGetId(stream, id);
}

cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return Driver().cuStreamGetDevice(stream, device);
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer, size_t bytes,
                                     unsigned flags) {
  return Driver().cuStreamAttachMemAsync(stream, reinterpret_cast<CUdeviceptr>(pointer), bytes,
                                         flags);
}

cudaError_t cudaStreamCopyAttributes(cudaStream_t target, cudaStream_t source) {
  return Driver().cuStreamCopyAttributes(target, source);
}

cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaStreamAttrID id,
                                   cudaStreamAttrValue* value) {
  return Driver().cuStreamGetAttribute(stream, Id(id),
                                       reinterpret_cast<CUstreamAttrValue*>(value));
}

cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaStreamAttrID id,
                                   const cudaStreamAttrValue* value) {
  return Driver().cuStreamSetAttribute(stream, Id(id),
                                       reinterpret_cast<const CUstreamAttrValue*>(value));
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return Driver().cuCtxGetStreamPriorityRange(least, greatest);
}

cudaError_t cudaCtxResetPersistingL2Cache() { return Driver().cuCtxResetPersistingL2Cache(); }

}  // namespace api
}  // namespace runtime
