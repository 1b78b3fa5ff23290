// Contexts: creation, each thread's stack of current contexts, limits, synchronisation.
#include <memory>
#include <vector>

#include "softgpu/driver/api.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/device.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/event.h"
#include "softgpu/driver/handles.h"
#include "softgpu/driver/stream.h"
#include "softgpu/driver/thread_state.h"

namespace softgpu::api {
namespace {

constexpr unsigned kApiVersion = 3020;

std::vector<std::shared_ptr<Context>>& Stack() { return ThreadState::Get().contexts; }

CUresult Create(CUcontext* out, unsigned flags, CUdevice ordinal) {
  Device* device = nullptr;
  if (out == nullptr || (flags & ~CU_CTX_FLAGS_MASK) != 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindDevice(ordinal, &device);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<Context> context = Context::Create(device, flags, false);
  Stack().push_back(context);
  *out = context->handle();
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuCtxCreate_v2(CUcontext* context, unsigned int flags, CUdevice device) {
  return Create(context, flags, device);
}

CUresult cuCtxCreate(CUcontext* context, unsigned int flags, CUdevice device) {
  return Create(context, flags, device);
}

CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam*, int count, unsigned int flags,
                        CUdevice device) {
  if (count != 0)
    return Fail(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "there is no MPS to limit multiprocessors");
  return Create(context, flags, device);
}

CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* params, unsigned int flags,
                        CUdevice device) {
  if (params != nullptr && params->numExecAffinityParams != 0) {
    return Fail(CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY, "there is no MPS to limit multiprocessors");
  }
  if (params != nullptr && params->cigParams != nullptr) {
    return Fail(CUDA_ERROR_NOT_SUPPORTED, "there is no graphics to interoperate with");
  }
  return Create(context, flags, device);
}

CUresult cuCtxDestroy_v2(CUcontext handle) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const std::shared_ptr<Context> context = Driver::Get().contexts.Find(handle);
  if (context == nullptr) return Fail(CUDA_ERROR_INVALID_CONTEXT, "this is no context");
  if (context->primary()) {
    return Fail(CUDA_ERROR_INVALID_CONTEXT, "a primary context is released, not destroyed");
  }
  context->Destroy();
  if (Context::Current() == context) Stack().pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxDestroy(CUcontext handle) { return api::cuCtxDestroy_v2(handle); }

CUresult cuCtxAttach(CUcontext* context, unsigned int flags) {
  if (context == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuCtxDetach(CUcontext handle) { return api::cuCtxDestroy_v2(handle); }

// --- the stack

CUresult cuCtxPushCurrent_v2(CUcontext handle) {
  std::shared_ptr<Context> context;
  if (handle == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  const CUresult result = FindContext(handle, &context);
  if (result == CUDA_SUCCESS) Stack().push_back(context);
  return result;
}

CUresult cuCtxPushCurrent(CUcontext handle) { return api::cuCtxPushCurrent_v2(handle); }

CUresult cuCtxPopCurrent_v2(CUcontext* out) {
  if (Stack().empty() || Stack().back() == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  if (out != nullptr) *out = Stack().back()->handle();
  Stack().pop_back();
  return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext* out) { return api::cuCtxPopCurrent_v2(out); }

CUresult cuCtxSetCurrent(CUcontext handle) {
  if (handle == nullptr) {
    if (!Stack().empty()) Stack().pop_back();
    return CUDA_SUCCESS;
  }
  std::shared_ptr<Context> context;
  const CUresult result = FindContext(handle, &context);
  if (result != CUDA_SUCCESS) return result;
  if (!Stack().empty()) Stack().pop_back();
  Stack().push_back(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::shared_ptr<Context> context = Context::Current();
  *out = context != nullptr ? context->handle() : nullptr;
  return CUDA_SUCCESS;
}

// --- what it is

CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext handle) {
  std::shared_ptr<Context> context;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindContext(handle, &context);
  if (result == CUDA_SUCCESS) *device = context->device().ordinal();
  return result;
}

CUresult cuCtxGetDevice(CUdevice* device) { return api::cuCtxGetDevice_v2(device, nullptr); }

CUresult cuCtxGetId(CUcontext handle, unsigned long long* id) {
  std::shared_ptr<Context> context;
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindContext(handle, &context);
  if (result == CUDA_SUCCESS) *id = context->id();
  return result;
}

CUresult cuCtxGetFlags(unsigned int* flags) {
  std::shared_ptr<Context> context;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CurrentContext(&context);
  if (result == CUDA_SUCCESS) *flags = context->flags();
  return result;
}

CUresult cuCtxSetFlags(unsigned int flags) {
  std::shared_ptr<Context> context;
  if ((flags & ~CU_CTX_FLAGS_MASK) != 0) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CurrentContext(&context);
  if (result == CUDA_SUCCESS) context->set_flags(flags);
  return result;
}

CUresult cuCtxGetApiVersion(CUcontext handle, unsigned int* version) {
  std::shared_ptr<Context> context;
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindContext(handle, &context);
  if (result == CUDA_SUCCESS) *version = kApiVersion;
  return result;
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  std::shared_ptr<Context> context;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return CUDA_SUCCESS;
}

// --- synchronisation

CUresult cuCtxSynchronize_v2(CUcontext handle) {
  std::shared_ptr<Context> context;
  const CUresult result = FindContext(handle, &context);
  return result == CUDA_SUCCESS ? context->Synchronize() : result;
}

CUresult cuCtxSynchronize() { return api::cuCtxSynchronize_v2(nullptr); }

CUresult cuCtxRecordEvent(CUcontext handle, CUevent event_handle) {
  std::shared_ptr<Context> context;
  std::shared_ptr<Event> event;
  CUresult result = FindContext(handle, &context);
  if (result == CUDA_SUCCESS) result = FindEvent(event_handle, &event);
  if (result == CUDA_SUCCESS) event->RecordContext(*context);
  return result;
}

CUresult cuCtxWaitEvent(CUcontext handle, CUevent event_handle) {
  std::shared_ptr<Context> context;
  std::shared_ptr<Event> event;
  CUresult result = FindContext(handle, &context);
  if (result == CUDA_SUCCESS) result = FindEvent(event_handle, &event);
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<Event::Mark> mark = event->mark();
  if (mark == nullptr) return CUDA_SUCCESS;
  for (const std::shared_ptr<Stream>& stream : context->Streams()) {
    const CUresult waits = WaitForMark(stream, *mark);
    if (waits != CUDA_SUCCESS) return waits;
  }
  return CUDA_SUCCESS;
}

// --- limits and preferences

CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  std::shared_ptr<Context> context;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CurrentContext(&context);
  return result == CUDA_SUCCESS ? context->limits().Get(limit, value) : result;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  std::shared_ptr<Context> context;
  const CUresult result = CurrentContext(&context);
  return result == CUDA_SUCCESS ? context->limits().Set(limit, value) : result;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
  std::shared_ptr<Context> context;
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CurrentContext(&context);
  if (result == CUDA_SUCCESS) *config = context->cache_config;
  return result;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  std::shared_ptr<Context> context;
  const CUresult result = CurrentContext(&context);
  if (result == CUDA_SUCCESS) context->cache_config = config;
  return result;
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  std::shared_ptr<Context> context;
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CurrentContext(&context);
  if (result == CUDA_SUCCESS) *config = context->shared_config;
  return result;
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
  std::shared_ptr<Context> context;
  const CUresult result = CurrentContext(&context);
  if (result == CUDA_SUCCESS) context->shared_config = config;
  return result;
}

CUresult cuCtxResetPersistingL2Cache() {
  std::shared_ptr<Context> context;
  return CurrentContext(&context);
}

CUresult cuCtxGetExecAffinity(CUexecAffinityParam* affinity, CUexecAffinityType type) {
  std::shared_ptr<Context> context;
  if (affinity == nullptr || type != CU_EXEC_AFFINITY_TYPE_SM_COUNT)
    return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  affinity->type = type;
  affinity->param.smCount.val = context->device().config().sms;
  return CUDA_SUCCESS;
}

// --- peers: nothing is needed for access, so enabling only has to be remembered by its errors

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  std::shared_ptr<Context> context, other;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CurrentContext(&context);
  if (result == CUDA_SUCCESS) result = FindContext(peer, &other);
  if (result != CUDA_SUCCESS) return result;
  if (peer == nullptr || context == other) return CUDA_ERROR_INVALID_CONTEXT;
  return context->EnablePeer(other->id()) ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

CUresult cuCtxDisablePeerAccess(CUcontext peer) {
  std::shared_ptr<Context> context, other;
  CUresult result = CurrentContext(&context);
  if (result == CUDA_SUCCESS) result = FindContext(peer, &other);
  if (result != CUDA_SUCCESS) return result;
  return context->DisablePeer(other->id()) ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget,
                                    CUflushGPUDirectRDMAWritesScope) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace softgpu::api
