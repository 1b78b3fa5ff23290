// The driver's log of errors. It stays empty here: the worker's driver has the log, with the lines
// of all sessions in it. So a program may ask for lines, and none come.
#include <cstdio>

#include "shim/driver/local.h"
#include "shim/driver/ready.h"

namespace local {
namespace {

// The handle of every registration: no callback is ever called, so none needs its own.
const CUlogsCallbackHandle kRegistered = reinterpret_cast<CUlogsCallbackHandle>(uint64_t{1});

}  // namespace

CUresult cuLogsRegisterCallback(CUlogsCallback callback, void*, CUlogsCallbackHandle* handle) {
  if (callback == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (handle != nullptr) *handle = kRegistered;
  return CUDA_SUCCESS;
}
CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle handle) {
  return handle == kRegistered ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuLogsCurrent(CUlogIterator* iterator, unsigned flags) {
  if (iterator == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *iterator = 0;
  return CUDA_SUCCESS;
}
CUresult cuLogsDumpToFile(CUlogIterator*, const char* path, unsigned flags) {
  if (path == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  std::FILE* const file = std::fopen(path, "w");
  if (file == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
  return std::fclose(file) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}
CUresult cuLogsDumpToMemory(CUlogIterator*, char* buffer, size_t* size, unsigned flags) {
  if (buffer == nullptr || size == nullptr || *size == 0 || flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  *buffer = 0;
  *size = 0;
  return CUDA_SUCCESS;
}

}  // namespace local
