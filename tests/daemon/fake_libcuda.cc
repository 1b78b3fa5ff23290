// A libcuda.so.1 that knows memory and contexts and runs nothing: what keeper and worker need of a
// device.
//
// Memory is a memfd, so that it can be exported. $LANEWAY_FAKE_MEMORY sets the device's bytes.
// While the file $LANEWAY_FAKE_FAULT exists the device is poisoned: every question about a stream
// returns 700, and the error log says what is in the file. With $LANEWAY_FAKE_NO_DEVICE it does not
// start, and not before the file $LANEWAY_FAKE_HOLD is gone; no more does the program P before
// $LANEWAY_FAKE_HOLD.P is.
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

CUlogsCallback log_callback = nullptr;
void* log_data = nullptr;
std::once_flag fault_told;

bool Poisoned() {
  const char* const path = std::getenv("LANEWAY_FAKE_FAULT");
  if (path == nullptr || access(path, R_OK) != 0) return false;
  std::call_once(fault_told, [path] {
    char text[256] = {};
    std::FILE* const file = std::fopen(path, "r");
    const size_t length = std::fread(text, 1, sizeof text - 1, file);
    std::fclose(file);
    if (log_callback != nullptr) log_callback(log_data, CU_LOG_LEVEL_ERROR, text, length);
  });
  return true;
}

int FdOf(CUmemGenericAllocationHandle handle) { return static_cast<int>(handle) - 1; }

}  // namespace

EXPORTED CUresult cuInit(unsigned flags) {
  const char* const hold = std::getenv("LANEWAY_FAKE_HOLD");
  const std::string all = hold == nullptr ? "" : hold;
  const std::string mine = all + "." + program_invocation_short_name;
  while (hold != nullptr && (access(all.c_str(), F_OK) == 0 || access(mine.c_str(), F_OK) == 0))
    poll(nullptr, 0, 1);
  return std::getenv("LANEWAY_FAKE_NO_DEVICE") != nullptr ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

EXPORTED CUresult cuDeviceGetCount(int* count) {
  *count = 1;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  std::snprintf(name, static_cast<size_t>(length), "fake device");
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  *uuid = {};
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuDeviceGetPCIBusId(char* id, int length, CUdevice device) {
  std::snprintf(id, static_cast<size_t>(length), "0000:01:00.0");
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  *value = 8;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  const char* const memory = std::getenv("LANEWAY_FAKE_MEMORY");
  *bytes = memory == nullptr ? size_t{1} << 30 : std::strtoull(memory, nullptr, 10);
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuMemGetAllocationGranularity(size_t* bytes,
                                                const CUmemAllocationProp* properties,
                                                CUmemAllocationGranularity_flags option) {
  *bytes = size_t{2} << 20;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                              const CUmemAllocationProp* properties, unsigned long long flags) {
  const int fd = memfd_create("fake-extent", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) return CUDA_ERROR_OUT_OF_MEMORY;
  *handle = static_cast<CUmemGenericAllocationHandle>(fd) + 1;
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return close(FdOf(handle)) == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORTED CUresult cuMemExportToShareableHandle(void* shareable, CUmemGenericAllocationHandle handle,
                                               CUmemAllocationHandleType type,
                                               unsigned long long flags) {
  const int fd = dup(FdOf(handle));
  std::memcpy(shareable, &fd, sizeof fd);
  return fd >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORTED CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle,
                                                 void* os_handle, CUmemAllocationHandleType type) {
  const int fd = dup(static_cast<int>(reinterpret_cast<intptr_t>(os_handle)));
  *handle = static_cast<CUmemGenericAllocationHandle>(fd) + 1;
  return fd >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EXPORTED CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  *context = reinterpret_cast<CUcontext>(0x1000);
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuCtxPushCurrent_v2(CUcontext context) { return CUDA_SUCCESS; }

EXPORTED CUresult cuCtxPopCurrent_v2(CUcontext* context) { return CUDA_SUCCESS; }

EXPORTED CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  *stream = reinterpret_cast<CUstream>(0x2000);
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuStreamQuery(CUstream stream) {
  return Poisoned() ? CUDA_ERROR_ILLEGAL_ADDRESS
                    : CUDA_SUCCESS;  // the worker asks ten times a second
}

EXPORTED CUresult cuGetErrorName(CUresult error, const char** name) {
  *name = error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_FAKE";
  return CUDA_SUCCESS;
}

EXPORTED CUresult cuLogsRegisterCallback(CUlogsCallback callback, void* data,
                                         CUlogsCallbackHandle* handle) {
  log_callback = callback;
  log_data = data;
  *handle = nullptr;
  return CUDA_SUCCESS;
}
