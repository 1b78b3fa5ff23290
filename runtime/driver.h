// The documented driver interface as the runtime sees it: one table of function pointers.
//
// The driver is whatever dlopen("libcuda.so.1") finds at first use: the vendor's, a software
// device, or a library of that SONAME that was preloaded. Loading this runtime loads no driver.
//
// Calling an entry, Driver().cuMemAlloc_v2(...), maps the result to a runtime error, so functions
// of the runtime pass it on unchanged. A function that the driver lacks answers
// cudaErrorCallRequiresNewerDriver.
// Thread safety: the table is written once, before LoadDriver returns; then it is constant.
#pragma once

#include <cuda.h>
#include <cudaProfiler.h>

#include "runtime/error.h"

namespace runtime {

template <class Signature>
class DriverCall;

template <class... Args>
class DriverCall<CUresult(Args...)> {
 public:
  cudaError_t operator()(Args... args) const {
    if (function_ == nullptr) return cudaErrorCallRequiresNewerDriver;
    return ToError(function_(args...));
  }
  void Resolve(void* address) { function_ = reinterpret_cast<CUresult (*)(Args...)>(address); }

 private:
  CUresult (*function_)(Args...) = nullptr;
};

// The driver's name of the memory behind a pointer of the runtime's caller.
inline CUdeviceptr DeviceAddress(const void* pointer) {
  return reinterpret_cast<CUdeviceptr>(pointer);
}

struct DriverTable {
#define DRIVER(fn) DriverCall<decltype(::fn)> fn;
#include "runtime/driver.inc"
#undef DRIVER
};

// Finds the driver, fills the table and calls cuInit, once per process; later calls return the
// first call's result. cudaErrorInsufficientDriver when there is no driver library.
cudaError_t LoadDriver();

// Finds the driver without cuInit, for the calls that need none (cudaDriverGetVersion).
// False when there is no driver library.
bool FindDriver();

// REQUIRES: FindDriver() or LoadDriver() was called.
const DriverTable& Driver();

// True once the process has begun to exit: the driver may be gone, so nothing is handed back to it.
bool Exiting();

}  // namespace runtime
