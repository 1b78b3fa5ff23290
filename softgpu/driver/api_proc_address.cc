// cuGetProcAddress: from a base name, a CUDA version and a choice of default stream to an entry
// point.
#include <string>

#include "ipc/calls/proc_address.h"
#include "softgpu/driver/api.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/exports.h"

namespace softgpu::api {
namespace {

constexpr int kDriverVersion = 13000;
constexpr cuuint64_t kLegacy = CU_GET_PROC_ADDRESS_LEGACY_STREAM,
                     kPerThread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

}  // namespace

CUresult cuGetProcAddress_v2(const char* symbol, void** function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult* status) {
  if (symbol == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (flags != CU_GET_PROC_ADDRESS_DEFAULT && flags != kLegacy && flags != kPerThread) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "the flags are unknown");
  }
  if (version > kDriverVersion) return Fail(CUDA_ERROR_INVALID_VALUE, "the driver is older: 13.0");
  const ipc::Entry entry = ipc::FindEntry(symbol, version, flags == kPerThread);
  *function = entry.symbol.empty() ? nullptr : ExportedAddress(entry.symbol);
  if (status != nullptr) *status = static_cast<CUdriverProcAddressQueryResult>(entry.status);
  return CUDA_SUCCESS;
}

CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags) {
  const CUresult result = api::cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
  if (result != CUDA_SUCCESS || *function != nullptr) return result;
  return Fail(CUDA_ERROR_NOT_FOUND, std::string("no entry point is called ") + symbol);
}

}  // namespace softgpu::api
