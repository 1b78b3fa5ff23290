#include "runtime/context.h"

#include <atomic>

#include "base/mutex.h"
#include "runtime/driver.h"
#include "runtime/thread_state.h"

namespace runtime {
namespace {

struct Primary {
  std::atomic<CUcontext> context = nullptr;  // null: not retained
  std::atomic<uint32_t> generation = 0;      // counts resets
};

Primary primaries[kDevicesMax];
base::Mutex retain_mutex;

uint64_t PrimaryKey(int device, uint32_t generation) {
  return uint64_t{generation} << 32 | static_cast<uint32_t>(device + 1);
}

// Ids of the driver are unique in a process; the top bit keeps them apart from PrimaryKey.
uint64_t ForeignKey(CUcontext context) {
  unsigned long long id = 0;
  if (Driver().cuCtxGetId(context, &id) != cudaSuccess) id = reinterpret_cast<uint64_t>(context);
  return id | uint64_t{1} << 63;
}

void NotePrimary(ThreadState& thread, CUcontext context, int device) {
  const uint32_t generation = primaries[device].generation.load();
  thread.context = thread.primary = context;
  thread.primary_device = device;
  thread.primary_generation = generation;
  thread.context_key = PrimaryKey(device, generation);
}

// A context that is current but was not at the last call of this thread.
cudaError_t Adopt(ThreadState& thread, CUcontext current) {
  for (int device = 0; device < kDevicesMax; ++device) {
    if (primaries[device].context.load() != current) continue;
    NotePrimary(thread, current, device);
    return cudaSuccess;
  }
  // A primary context that another thread has reset is still current here, but dead.
  if (current == thread.primary) return UseDevice(thread.primary_device);
  thread.context = current;
  thread.context_key = ForeignKey(current);
  return cudaSuccess;
}

}  // namespace

cudaError_t UseContext() {
  ThreadState& thread = Thread();
  CUcontext current = nullptr;
  if (const cudaError_t error = Driver().cuCtxGetCurrent(&current); error != cudaSuccess) {
    return error;
  }
  if (current == nullptr) return UseDevice(thread.device);
  if (current == thread.primary &&
      thread.primary_generation == primaries[thread.primary_device].generation.load()) {
    thread.context = current;
    thread.context_key = PrimaryKey(thread.primary_device, thread.primary_generation);
    return cudaSuccess;
  }
  return Adopt(thread, current);
}

cudaError_t UseDevice(int device) {
  CUcontext context = nullptr;
  cudaError_t error = PrimaryContext(device, &context);
  if (error == cudaSuccess) error = Driver().cuCtxSetCurrent(context);
  if (error != cudaSuccess) return error;
  ThreadState& thread = Thread();
  thread.device = device;
  NotePrimary(thread, context, device);
  return cudaSuccess;
}

cudaError_t CurrentDevice(int* device) {
  CUcontext current = nullptr;
  cudaError_t error = Driver().cuCtxGetCurrent(&current);
  if (error != cudaSuccess) return error;
  const ThreadState& thread = Thread();
  if (current == nullptr || current == thread.primary) {
    *device = current == nullptr ? thread.device : thread.primary_device;
    return cudaSuccess;
  }
  CUdevice of_context = 0;
  error = Driver().cuCtxGetDevice(&of_context);
  if (error == cudaSuccess) *device = of_context;
  return error;
}

cudaError_t PrimaryContext(int device, CUcontext* context) {
  if (device < 0 || device >= kDevicesMax) return cudaErrorInvalidDevice;
  Primary& primary = primaries[device];
  *context = primary.context.load();
  if (*context != nullptr) return cudaSuccess;
  const base::MutexLock lock(&retain_mutex);
  *context = primary.context.load();
  if (*context != nullptr) return cudaSuccess;
  const cudaError_t error = Driver().cuDevicePrimaryCtxRetain(context, device);
  if (error == cudaSuccess) primary.context.store(*context);
  return error;
}

CUcontext LivePrimary(uint64_t context_key) {
  const uint32_t number = static_cast<uint32_t>(context_key);
  if (context_key >> 63 != 0 || number == 0 || number > kDevicesMax) return nullptr;
  const int device = static_cast<int>(number) - 1;
  const uint32_t generation = primaries[device].generation.load();
  return PrimaryKey(device, generation) == context_key ? primaries[device].context.load() : nullptr;
}

cudaError_t ResetDevice(int device) {
  if (device < 0 || device >= kDevicesMax) return cudaErrorInvalidDevice;
  ThreadState& thread = Thread();
  const base::MutexLock lock(&retain_mutex);
  Primary& primary = primaries[device];
  const CUcontext old = primary.context.exchange(nullptr);
  if (old != nullptr) {
    primary.generation.fetch_add(1);
    Driver().cuDevicePrimaryCtxRelease_v2(device);
  }
  const cudaError_t error = Driver().cuDevicePrimaryCtxReset_v2(device);
  if (old != nullptr && old == thread.primary) {
    thread.primary = nullptr;
    Driver().cuCtxSetCurrent(nullptr);
  }
  return error;
}

}  // namespace runtime
