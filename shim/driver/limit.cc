// Settings that CUDA keeps for a context. Here each session has one set of them. The client keeps
// and returns the values. One of them reaches the device, whose settings all sessions share: the
// heap of malloc in kernels has what the session with the largest limit asks for.
#include <algorithm>
#include <array>

#include "base/mutex.h"
#include "shim/driver/local.h"
#include "shim/function_lookup.h"
#include "shim/lock_order.h"
#include "shim/send.h"
#include "shim/state.h"

namespace local {
namespace {

using shim::Context;
using shim::State;

struct Settings {
  base::Mutex mutex ACQUIRED_AFTER(shim::lock_order::kKeeping);
  std::array<size_t, CU_LIMIT_MAX> limit GUARDED_BY(mutex) = {};
  CUfunc_cache cache GUARDED_BY(mutex) = CU_FUNC_CACHE_PREFER_NONE;
  CUsharedconfig banks GUARDED_BY(mutex) = CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE;

  Settings() {
    limit[CU_LIMIT_STACK_SIZE] = 1024;
    limit[CU_LIMIT_PRINTF_FIFO_SIZE] = 1u << 20;
    limit[CU_LIMIT_MALLOC_HEAP_SIZE] = 8u << 20;
    limit[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2;
    limit[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048;
    limit[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64;
  }
};

Settings& TheSettings() {
  static Settings* const settings = new Settings;
  return *settings;
}

CUresult Current() {
  Context* context = nullptr;
  return State::Process().Current(&context);
}

}  // namespace

CUresult cuCtxSetLimit(CUlimit limit, size_t value) {
  Context* context = nullptr;
  if (const CUresult result = State::Process().Current(&context); result != CUDA_SUCCESS)
    return result;
  if (limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  if (limit == CU_LIMIT_MALLOC_HEAP_SIZE) {
    const CUresult result = shim::Call<ipc::Op::GrowHeap>(context->wire, value);
    if (result != CUDA_SUCCESS) return result;
  }
  const base::MutexLock lock(&TheSettings().mutex);
  TheSettings().limit[limit] = value;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(size_t* value, CUlimit limit) {
  if (const CUresult result = Current(); result != CUDA_SUCCESS) return result;
  if (value == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (limit < 0 || limit >= CU_LIMIT_MAX) return CUDA_ERROR_UNSUPPORTED_LIMIT;
  const base::MutexLock lock(&TheSettings().mutex);
  *value = TheSettings().limit[limit];
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
  if (const CUresult result = Current(); result != CUDA_SUCCESS) return result;
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const base::MutexLock lock(&TheSettings().mutex);
  *config = TheSettings().cache;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCacheConfig(CUfunc_cache config) {
  if (const CUresult result = Current(); result != CUDA_SUCCESS) return result;
  const base::MutexLock lock(&TheSettings().mutex);
  TheSettings().cache = config;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetSharedMemConfig(CUsharedconfig* config) {
  if (const CUresult result = Current(); result != CUDA_SUCCESS) return result;
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const base::MutexLock lock(&TheSettings().mutex);
  *config = TheSettings().banks;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetSharedMemConfig(CUsharedconfig config) {
  if (const CUresult result = Current(); result != CUDA_SUCCESS) return result;
  const base::MutexLock lock(&TheSettings().mutex);
  TheSettings().banks = config;
  return CUDA_SUCCESS;
}

CUresult cuCtxResetPersistingL2Cache() { return Current(); }

// No two sessions' devices reach each other's memory, nor do two devices of one session.
CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  if (const CUresult result = Current(); result != CUDA_SUCCESS) return result;
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const bool known = State::Process().contexts.Find(reinterpret_cast<uint64_t>(peer)) != nullptr;
  return known ? CUDA_ERROR_PEER_ACCESS_UNSUPPORTED : CUDA_ERROR_INVALID_CONTEXT;
}
CUresult cuCtxDisablePeerAccess(CUcontext) {
  if (const CUresult result = Current(); result != CUDA_SUCCESS) return result;
  return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
}

}  // namespace local
