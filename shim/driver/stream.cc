// Streams: named by the client; waiting reads completion words.
#include "shim/client.h"
#include "shim/devices.h"
#include "shim/driver/local.h"
#include "shim/graphs/capture.h"
#include "shim/send.h"
#include "shim/state.h"
#include "shim/streams.h"
#include "shim/sync.h"

namespace local {
namespace {

using shim::Context;
using shim::State;
using shim::Stream;
using shim::Streams;

constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -5;

CUresult Find(CUstream program, Stream** stream) {
  return Streams::Process().UseCurrent(program, stream);
}

}  // namespace

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  Context* context = nullptr;
  uint64_t value = 0;
  if (const CUresult result = State::Process().Current(&context, &value); result != CUDA_SUCCESS)
    return result;
  if (stream == nullptr || (flags & ~CU_STREAM_NON_BLOCKING) != 0) return CUDA_ERROR_INVALID_VALUE;
  const int clamped = priority > kLeastPriority      ? kLeastPriority
                      : priority < kGreatestPriority ? kGreatestPriority
                                                     : priority;
  uint64_t made = 0;
  const CUresult result = Streams::Process().Create(value, flags, clamped, &made);
  if (result == CUDA_SUCCESS) *stream = reinterpret_cast<CUstream>(made);
  return result;
}
CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return local::cuStreamCreateWithPriority(stream, flags, 0);
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  if (const CUresult result = shim::Client::Process().Ready(); result != CUDA_SUCCESS)
    return result;
  return Streams::Process().Destroy(reinterpret_cast<uint64_t>(stream));
}
CUresult cuStreamDestroy(CUstream stream) { return local::cuStreamDestroy_v2(stream); }

CUresult cuStreamQuery(CUstream stream) {
  Stream* found = nullptr;
  if (const CUresult result = Find(stream, &found); result != CUDA_SUCCESS) return result;
  if (const auto refused = shim::graphs::RefuseCapture(*found)) return *refused;
  return shim::QueryStream(*found);
}

CUresult cuStreamSynchronize(CUstream stream) {
  Stream* found = nullptr;
  if (const CUresult result = Find(stream, &found); result != CUDA_SUCCESS) return result;
  if (const auto refused = shim::graphs::RefuseCapture(*found)) return *refused;
  return shim::SynchronizeStream(*found);
}

CUresult cuStreamGetPriority(CUstream stream, int* priority) {
  Stream* found = nullptr;
  if (const CUresult result = Find(stream, &found); result != CUDA_SUCCESS) return result;
  if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *priority = found->priority;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetFlags(CUstream stream, unsigned* flags) {
  Stream* found = nullptr;
  if (const CUresult result = Find(stream, &found); result != CUDA_SUCCESS) return result;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *flags = found->flags;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetId(CUstream stream, unsigned long long* id) {
  Stream* found = nullptr;
  if (const CUresult result = Find(stream, &found); result != CUDA_SUCCESS) return result;
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *id = found->id;
  return CUDA_SUCCESS;
}

CUresult cuStreamGetDevice(CUstream stream, CUdevice* device) {
  Stream* found = nullptr;
  if (const CUresult result = Find(stream, &found); result != CUDA_SUCCESS) return result;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *device = shim::Devices::Process().Visible(found->device);
  return CUDA_SUCCESS;
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  Stream* found = nullptr;
  Context* current = nullptr;
  uint64_t value = 0;
  if (const CUresult result = State::Process().Current(&current, &value); result != CUDA_SUCCESS)
    return result;
  if (const CUresult result = Find(stream, &found); result != CUDA_SUCCESS) return result;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *context = reinterpret_cast<CUcontext>(found->legacy ? value : found->context);
  return CUDA_SUCCESS;
}
CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext* context, CUgreenCtx* green) {
  if (green != nullptr) *green = nullptr;
  return local::cuStreamGetCtx(stream, context);
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  Context* context = nullptr;
  if (const CUresult result = State::Process().Current(&context); result != CUDA_SUCCESS)
    return result;
  if (least != nullptr) *least = kLeastPriority;
  if (greatest != nullptr) *greatest = kGreatestPriority;
  return CUDA_SUCCESS;
}

}  // namespace local
