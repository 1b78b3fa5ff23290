// Driver functions for programs that ask the runtime for them.
#include "runtime/api.h"
#include "runtime/driver.h"

namespace runtime {
namespace {

// A program that wants to know the status gets it there, with a null address, and success.
cudaError_t Find(const char* symbol, void** address, int version, unsigned long long flags,
                 cudaDriverEntryPointQueryResult* status) {
  if (symbol == nullptr || address == nullptr) return cudaErrorInvalidValue;
  *address = nullptr;
  CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;
  cudaError_t error = Driver().cuGetProcAddress_v2(symbol, address, version, flags, &found);
  const bool missing = *address == nullptr;
  if (error == cudaSuccess && missing && found == CU_GET_PROC_ADDRESS_SUCCESS) {
    found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  if (error == cudaErrorSymbolNotFound || (error == cudaSuccess && missing)) {
    if (found == CU_GET_PROC_ADDRESS_SUCCESS) found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    error = status == nullptr ? cudaErrorSymbolNotFound : cudaSuccess;
  }
  if (status != nullptr) *status = static_cast<cudaDriverEntryPointQueryResult>(found);
  return error;
}

}  // namespace

namespace api {

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** address, unsigned version,
                                             unsigned long long flags,
                                             cudaDriverEntryPointQueryResult* status) {
  return Find(symbol, address, static_cast<int>(version), flags, status);
}

cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** address, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* status) {
  return Find(symbol, address, CUDART_VERSION, flags, status);
}

// Programs built for per-thread default streams get the driver functions of that kind by default.
cudaError_t cudaGetDriverEntryPointByVersion_ptsz(const char* symbol, void** address,
                                                  unsigned version, unsigned long long flags,
                                                  cudaDriverEntryPointQueryResult* status) {
  if (flags == cudaEnableDefault) flags = cudaEnablePerThreadDefaultStream;
  return Find(symbol, address, static_cast<int>(version), flags, status);
}

cudaError_t cudaGetDriverEntryPoint_ptsz(const char* symbol, void** address,
                                         unsigned long long flags,
                                         cudaDriverEntryPointQueryResult* status) {
  return api::cudaGetDriverEntryPointByVersion_ptsz(symbol, address, CUDART_VERSION, flags, status);
}

}  // namespace api
}  // namespace runtime
