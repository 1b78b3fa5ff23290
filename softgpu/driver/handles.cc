#include "softgpu/driver/handles.h"

#include "softgpu/driver/context.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/event.h"
#include "softgpu/driver/function.h"
#include "softgpu/driver/library.h"
#include "softgpu/driver/stream.h"
#include "softgpu/driver/thread_state.h"

namespace softgpu {

CUresult CurrentContext(std::shared_ptr<Context>* context) {
  *context = Context::Current();
  if (*context == nullptr) return Fail(CUDA_ERROR_INVALID_CONTEXT, "no context is current");
  if ((*context)->destroyed())
    return Fail(CUDA_ERROR_CONTEXT_IS_DESTROYED, "the context is destroyed");
  return CUDA_SUCCESS;
}

CUresult FindContext(CUcontext handle, std::shared_ptr<Context>* context) {
  if (handle == nullptr) return CurrentContext(context);
  *context = Driver::Get().contexts.Find(handle);
  return *context != nullptr ? CUDA_SUCCESS
                             : Fail(CUDA_ERROR_INVALID_CONTEXT, "this is no context");
}

CUresult FindDevice(CUdevice ordinal, Device** device) {
  *device = Driver::Get().device(ordinal);
  return *device != nullptr ? CUDA_SUCCESS
                            : Fail(CUDA_ERROR_INVALID_DEVICE, "there is no such device");
}

CUresult FindStream(CUstream handle, std::shared_ptr<Stream>* stream) {
  const ThreadState& thread = ThreadState::Get();
  const bool per_thread =
      handle == CU_STREAM_PER_THREAD || (handle == nullptr && thread.per_thread_default);
  if (!per_thread && handle != nullptr && handle != CU_STREAM_LEGACY) {
    *stream = Driver::Get().streams.Find(handle);
    return *stream != nullptr ? CUDA_SUCCESS : Fail(CUDA_ERROR_INVALID_HANDLE, "this is no stream");
  }
  std::shared_ptr<Context> context;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  *stream = per_thread ? context->PerThreadStream(thread.id) : context->LegacyStream();
  return CUDA_SUCCESS;
}

CUresult FindEvent(CUevent handle, std::shared_ptr<Event>* event) {
  *event = Driver::Get().events.Find(handle);
  return *event != nullptr ? CUDA_SUCCESS : Fail(CUDA_ERROR_INVALID_HANDLE, "this is no event");
}

CUresult FindFunction(CUfunction handle, std::shared_ptr<Function>* function) {
  *function = Driver::Get().functions.Find(handle);
  if (*function != nullptr) return CUDA_SUCCESS;
  const std::shared_ptr<LibraryKernel> kernel = Driver::Get().kernels.Find(handle);
  if (kernel == nullptr) return Fail(CUDA_ERROR_INVALID_HANDLE, "this is no kernel");
  std::shared_ptr<Context> context;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<Library> library = kernel->library();
  if (library == nullptr)
    return Fail(CUDA_ERROR_INVALID_HANDLE, "the kernel's library is unloaded");
  return library->FunctionOf(*kernel, *context, function);
}

}  // namespace softgpu
