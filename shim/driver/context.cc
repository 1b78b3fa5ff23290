// Contexts: entirely the client's. The worker has one context per device; a program's contexts are
// names for sets of objects in it, numbered in message headers, and end by destroying what is in
// them.
#include <algorithm>
#include <vector>

#include "shim/client.h"
#include "shim/contexts.h"
#include "shim/devices.h"
#include "shim/driver/local.h"
#include "shim/driver/ready.h"
#include "shim/state.h"
#include "shim/sync.h"
#include "shim/thread_state.h"

namespace local {
namespace {

using shim::Client;
using shim::Context;
using shim::Contexts;
using shim::Devices;
using shim::State;
using shim::ThisThread;

uint64_t Bits(CUcontext context) { return reinterpret_cast<uint64_t>(context); }
CUcontext Program(uint64_t value) { return reinterpret_cast<CUcontext>(value); }

CUresult Create(CUcontext* context, unsigned flags, CUdevice device) {
  int ordinal = 0;
  if (const CUresult result = OrdinalOf(device, &ordinal); result != CUDA_SUCCESS) return result;
  if (context == nullptr || (flags & ~CU_CTX_FLAGS_MASK) != 0) return CUDA_ERROR_INVALID_VALUE;
  uint64_t value = 0;
  if (const CUresult result = Contexts::Create(ordinal, flags, &value); result != CUDA_SUCCESS)
    return result;
  ThisThread().contexts.push_back(value);
  *context = Program(value);
  return CUDA_SUCCESS;
}

// Null means the calling thread's current context.
CUresult FindOrCurrent(CUcontext program, Context** context) {
  if (program == nullptr) return State::Process().Current(context);
  if (const CUresult result = Client::Process().Ready(); result != CUDA_SUCCESS) return result;
  *context = State::Process().contexts.Find(Bits(program));
  return *context != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

}  // namespace

// --- creation and end ----------------------------------------------------------------------------

CUresult cuCtxCreate(CUcontext* context, unsigned flags, CUdevice device) {
  return Create(context, flags, device);
}
CUresult cuCtxCreate_v2(CUcontext* context, unsigned flags, CUdevice device) {
  return Create(context, flags, device);
}
CUresult cuCtxCreate_v3(CUcontext* context, CUexecAffinityParam*, int affinities, unsigned flags,
                        CUdevice device) {
  // A share of multiprocessors can't be promised in a context that others use too.
  return affinities != 0 ? CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY : Create(context, flags, device);
}
CUresult cuCtxCreate_v4(CUcontext* context, CUctxCreateParams* params, unsigned flags,
                        CUdevice device) {
  if (params != nullptr && (params->numExecAffinityParams != 0 || params->cigParams != nullptr)) {
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return Create(context, flags, device);
}

CUresult cuCtxDestroy_v2(CUcontext context) {
  if (const CUresult result = Client::Process().Ready(); result != CUDA_SUCCESS) return result;
  const Context* const found = State::Process().contexts.Find(Bits(context));
  if (found == nullptr || found->primary) return CUDA_ERROR_INVALID_CONTEXT;
  // Of this thread alone, as CUDA documents: other threads keep a stale name on their stacks.
  std::vector<uint64_t>& stack = ThisThread().contexts;
  if (!stack.empty() && stack.back() == Bits(context)) stack.pop_back();
  return Contexts::Destroy(Bits(context));
}
CUresult cuCtxDestroy(CUcontext context) { return local::cuCtxDestroy_v2(context); }

CUresult cuCtxAttach(CUcontext* context, unsigned flags) {
  Context* current = nullptr;
  uint64_t value = 0;
  if (const CUresult result = State::Process().Current(&current, &value); result != CUDA_SUCCESS)
    return result;
  if (context == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  current->attached.fetch_add(1);
  *context = Program(value);
  return CUDA_SUCCESS;
}

// The last detach destroys the context, as the driver's does.
CUresult cuCtxDetach(CUcontext context) {
  Context* found = nullptr;
  if (const CUresult result = FindOrCurrent(context, &found); result != CUDA_SUCCESS) return result;
  return found->attached.fetch_sub(1) > 1 ? CUDA_SUCCESS : local::cuCtxDestroy_v2(context);
}

// --- the calling thread's stack ------------------------------------------------------------------

CUresult cuCtxPushCurrent_v2(CUcontext context) {
  if (const CUresult result = Client::Process().Ready(); result != CUDA_SUCCESS) return result;
  if (State::Process().contexts.Find(Bits(context)) == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  ThisThread().contexts.push_back(Bits(context));
  return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent(CUcontext context) { return local::cuCtxPushCurrent_v2(context); }

CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  if (const CUresult result = Client::Process().Ready(); result != CUDA_SUCCESS) return result;
  std::vector<uint64_t>& stack = ThisThread().contexts;
  if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (context != nullptr) *context = Program(stack.back());
  stack.pop_back();
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent(CUcontext* context) { return local::cuCtxPopCurrent_v2(context); }

// Replaces the top of the thread's stack; null only removes the top.
CUresult cuCtxSetCurrent(CUcontext context) {
  if (const CUresult result = Client::Process().Ready(); result != CUDA_SUCCESS) return result;
  std::vector<uint64_t>& stack = ThisThread().contexts;
  if (context != nullptr && State::Process().contexts.Find(Bits(context)) == nullptr) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  if (!stack.empty()) stack.pop_back();
  if (context != nullptr) stack.push_back(Bits(context));
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  if (const CUresult result = Client::Process().Ready(); result != CUDA_SUCCESS) return result;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::vector<uint64_t>& stack = ThisThread().contexts;
  *context = stack.empty() ? nullptr : Program(stack.back());
  return CUDA_SUCCESS;
}

// --- questions -----------------------------------------------------------------------------------

CUresult cuCtxGetDevice_v2(CUdevice* device, CUcontext context) {
  Context* found = nullptr;
  if (const CUresult result = FindOrCurrent(context, &found); result != CUDA_SUCCESS) return result;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = Devices::Process().Visible(found->device);
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* device) { return local::cuCtxGetDevice_v2(device, nullptr); }

CUresult cuCtxGetFlags(unsigned* flags) {
  Context* current = nullptr;
  if (const CUresult result = State::Process().Current(&current); result != CUDA_SUCCESS)
    return result;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = current->flags.load();
  return CUDA_SUCCESS;
}

CUresult cuCtxSetFlags(unsigned flags) {
  Context* current = nullptr;
  if (const CUresult result = State::Process().Current(&current); result != CUDA_SUCCESS)
    return result;
  if ((flags & ~CU_CTX_FLAGS_MASK) != 0) return CUDA_ERROR_INVALID_VALUE;
  current->flags.store(flags);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
  Context* found = nullptr;
  if (const CUresult result = FindOrCurrent(context, &found); result != CUDA_SUCCESS) return result;
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = found->id.load();
  return CUDA_SUCCESS;
}

CUresult cuCtxGetApiVersion(CUcontext context, unsigned* version) {
  Context* found = nullptr;
  if (const CUresult result = FindOrCurrent(context, &found); result != CUDA_SUCCESS) return result;
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = found->api_version;
  return CUDA_SUCCESS;
}

// --- waiting -------------------------------------------------------------------------------------

CUresult cuCtxSynchronize_v2(CUcontext context) {
  Context* found = nullptr;
  if (const CUresult result = FindOrCurrent(context, &found); result != CUDA_SUCCESS) return result;
  return shim::SynchronizeDevice(found->device);
}
CUresult cuCtxSynchronize() { return local::cuCtxSynchronize_v2(nullptr); }

// --- primary contexts ----------------------------------------------------------------------------

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  int ordinal = 0;
  if (const CUresult result = OrdinalOf(device, &ordinal); result != CUDA_SUCCESS) return result;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  uint64_t value = 0;
  const CUresult result = Contexts::RetainPrimary(ordinal, &value);
  if (result == CUDA_SUCCESS) *context = Program(value);
  return result;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
  int ordinal = 0;
  if (const CUresult result = OrdinalOf(device, &ordinal); result != CUDA_SUCCESS) return result;
  return Contexts::ReleasePrimary(ordinal);
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return local::cuDevicePrimaryCtxRelease_v2(device);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
  int ordinal = 0;
  if (const CUresult result = OrdinalOf(device, &ordinal); result != CUDA_SUCCESS) return result;
  return Contexts::ResetPrimary(ordinal);
}
CUresult cuDevicePrimaryCtxReset(CUdevice device) {
  return local::cuDevicePrimaryCtxReset_v2(device);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
  int ordinal = 0;
  if (const CUresult result = OrdinalOf(device, &ordinal); result != CUDA_SUCCESS) return result;
  if ((flags & ~CU_CTX_FLAGS_MASK) != 0) return CUDA_ERROR_INVALID_VALUE;
  Contexts::SetPrimaryFlags(ordinal, flags);
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  return local::cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  int ordinal = 0;
  if (const CUresult result = OrdinalOf(device, &ordinal); result != CUDA_SUCCESS) return result;
  if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Contexts::PrimaryState(ordinal, flags, active);
  return CUDA_SUCCESS;
}

}  // namespace local
