#include "tests/runtime/fake_driver.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "base/mutex.h"

namespace {

struct Function {
  unsigned long calls = 0;
  CUresult result = CUDA_SUCCESS;
};

base::Mutex mutex;
std::map<std::string, Function> functions GUARDED_BY(mutex);
std::atomic<unsigned long> calls = 0;
thread_local CUcontext current = nullptr;
int contexts[16];
int context_number = 0;
std::atomic<CUstream> launch_stream = nullptr;
std::atomic<size_t> linked_bytes = 0;

CUresult Count(const char* function) {
  ++calls;
  const base::MutexLock lock(&mutex);
  Function& counted = functions[function];
  ++counted.calls;
  return counted.result;
}

CUcontext Primary() { return reinterpret_cast<CUcontext>(&contexts[context_number]); }

}  // namespace

// Counts the call and returns early if the test said so.
#define ENTER \
  if (const CUresult wanted = Count(__func__); wanted != CUDA_SUCCESS) return wanted

extern "C" __attribute__((visibility("default"))) unsigned long fake_calls() { return calls; }

extern "C" __attribute__((visibility("default"))) unsigned long fake_calls_of(
    const char* function) {
  const base::MutexLock lock(&mutex);
  return functions[function].calls;
}

extern "C" __attribute__((visibility("default"))) void fake_fail(const char* function,
                                                                 CUresult result) {
  const base::MutexLock lock(&mutex);
  functions[function].result = result;
}

extern "C" __attribute__((visibility("default"))) size_t fake_linked_bytes() {
  return linked_bytes;
}

extern "C" __attribute__((visibility("default"))) CUstream fake_launch_stream() {
  return launch_stream;
}

#pragma GCC visibility push(default)
extern "C" {

CUresult cuInit(unsigned) {
  ENTER;
  return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version) {
  ENTER;
  *version = CUDA_VERSION;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  ENTER;
  *count = 1;
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice) {
  ENTER;
  std::strncpy(name, "fake", static_cast<size_t>(length));
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice) {
  ENTER;
  std::memset(uuid, 7, sizeof *uuid);
  return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice) {
  ENTER;
  *bytes = size_t{1} << 30;
  return CUDA_SUCCESS;
}

// Every attribute is its own number, so a test sees which one a property was read from.
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  ENTER;
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  *value = static_cast<int>(attribute);
  return CUDA_SUCCESS;
}

// Whatever is asked of any address is 1.
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute*, void** values, CUdeviceptr) {
  ENTER;
  const unsigned one = 1;
  for (unsigned i = 0; i < count; ++i) std::memcpy(values[i], &one, sizeof one);
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  ENTER;
  if (device != 0) return CUDA_ERROR_INVALID_DEVICE;
  *context = Primary();
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
  ENTER;
  return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice) {
  ENTER;
  context_number = (context_number + 1) % 16;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  ENTER;
  *context = current;
  return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context) {
  ENTER;
  current = context;
  return CUDA_SUCCESS;
}

CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
  ENTER;
  *id = reinterpret_cast<unsigned long long>(context);
  return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice* device) {
  ENTER;
  *device = 0;
  return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize() {
  ENTER;
  return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  ENTER;
  *module = reinterpret_cast<CUmodule>(const_cast<void*>(image));
  return CUDA_SUCCESS;
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned, CUjit_option*, void**) {
  ENTER;
  return cuModuleLoadData(module, image);
}

CUresult cuLinkCreate_v2(unsigned, CUjit_option*, void**, CUlinkState* link) {
  ENTER;
  linked_bytes = 0;
  *link = reinterpret_cast<CUlinkState>(&linked_bytes);
  return CUDA_SUCCESS;
}

CUresult cuLinkAddData_v2(CUlinkState, CUjitInputType type, void*, size_t bytes, const char*,
                          unsigned, CUjit_option*, void**) {
  ENTER;
  if (type != CU_JIT_INPUT_FATBINARY) return CUDA_ERROR_INVALID_VALUE;
  linked_bytes += bytes;
  return CUDA_SUCCESS;
}

CUresult cuLinkComplete(CUlinkState link, void** image, size_t* bytes) {
  ENTER;
  *image = link;
  *bytes = 1;
  return CUDA_SUCCESS;
}

CUresult cuLinkDestroy(CUlinkState) {
  ENTER;
  return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule) {
  ENTER;
  return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule, const char* name) {
  ENTER;
  *function = reinterpret_cast<CUfunction>(const_cast<char*>(name));
  return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule, const char*) {
  ENTER;
  static char storage[64];
  *address = reinterpret_cast<CUdeviceptr>(storage);
  if (bytes != nullptr) *bytes = sizeof storage;
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction, unsigned grid_x, unsigned, unsigned, unsigned, unsigned,
                        unsigned, unsigned, CUstream stream, void**, void**) {
  ENTER;
  launch_stream = stream;
  return grid_x == 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  ENTER;
  *address = reinterpret_cast<CUdeviceptr>(std::malloc(bytes));
  return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  ENTER;
  std::free(reinterpret_cast<void*>(address));
  return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr target, const void* source, size_t bytes) {
  ENTER;
  std::memcpy(reinterpret_cast<void*>(target), source, bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoH_v2(void* target, CUdeviceptr source, size_t bytes) {
  ENTER;
  std::memcpy(target, reinterpret_cast<void*>(source), bytes);
  return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr target, const void* source, size_t bytes, CUstream) {
  ENTER;
  std::memcpy(reinterpret_cast<void*>(target), source, bytes);
  return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream) {
  ENTER;
  Count(stream == CU_STREAM_PER_THREAD ? "wait for the per-thread stream" : "wait for a stream");
  return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream) {
  ENTER;
  return CUDA_SUCCESS;
}

}  // extern "C"
#pragma GCC visibility pop
