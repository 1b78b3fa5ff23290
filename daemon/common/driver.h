// The few driver functions that the process side of keeper and worker needs, and how the driver is
// found: the vendor's libcuda.so.1, or the software GPU's by its path below lib/laneway/softgpu.
// Thread safety: immutable after loading.
#pragma once

#include "ipc/calls/vendor.h"  // before anything that includes <cuda.h>

#include <string>

#include "absl/status/statusor.h"
#include "ipc/control.h"

namespace common {

// clang-format off
#define LANEWAY_PROCESS_DRIVER_FUNCTIONS(FN) \
  FN(cuInit) \
  FN(cuDeviceGetCount) \
  FN(cuDeviceGet) \
  FN(cuDeviceGetName) \
  FN(cuDeviceGetUuid_v2) \
  FN(cuDeviceGetPCIBusId) \
  FN(cuDeviceGetAttribute) \
  FN(cuDeviceTotalMem_v2) \
  FN(cuMemGetAllocationGranularity) \
  FN(cuMemCreate) \
  FN(cuMemRelease) \
  FN(cuMemExportToShareableHandle) \
  FN(cuMemImportFromShareableHandle) \
  FN(cuDevicePrimaryCtxRetain) \
  FN(cuCtxPushCurrent_v2) \
  FN(cuCtxPopCurrent_v2) \
  FN(cuStreamCreate) \
  FN(cuStreamQuery) \
  FN(cuGetErrorName)
// clang-format on

struct Driver {
#define LANEWAY_MEMBER(name) decltype(&::name) name = nullptr;
  LANEWAY_PROCESS_DRIVER_FUNCTIONS(LANEWAY_MEMBER)
#undef LANEWAY_MEMBER
  // Drivers before 12.9 lack the error log; their faults carry no text.
  decltype(&::cuLogsRegisterCallback) cuLogsRegisterCallback = nullptr;
  decltype(&::cuLogsUnregisterCallback) cuLogsUnregisterCallback = nullptr;
  // The software GPU's extensions, described in its softgpu/driver/extension.h; null on other
  // drivers.
  CUresult (*softgpuSetPrintHandler)(void (*handler)(CUstream, const char*, size_t, void*),
                                     void* data) = nullptr;
  CUresult (*softgpuGetFault)(CUstream* stream, const char** text) = nullptr;
  CUstream (*softgpuRunningStream)() = nullptr;
  void* library = nullptr;  // never closed
  ipc::control::DeviceKind kind = ipc::control::DeviceKind::kSoft;
};

// Opens the library and finds the functions; initialises nothing. The error is a sentence for
// people.
absl::StatusOr<Driver> LoadDriver(ipc::control::DeviceKind kind);

// cuInit. The error is a sentence for people, with what the driver says of it.
absl::Status StartDriver(const Driver& driver);

// "CUDA_ERROR_..." of this driver, or the number.
std::string ErrorName(const Driver& driver, CUresult result);

}  // namespace common
