// Initialisation, versions, errors, the error log, the profiler switch.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "softgpu/driver/api.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/version.h"

namespace softgpu::api {
namespace {

constexpr size_t kLogFileBytesMax = 1u << 24;

const char* ErrorName(CUresult error) {
  switch (error) {
#define ERROR(name, text) \
  case name:              \
    return #name;
#include "ipc/calls/driver_errors.inc"
#undef ERROR
  }
  return nullptr;
}

const char* ErrorText(CUresult error) {
  switch (error) {
#define ERROR(name, text) \
  case name:              \
    return text;
#include "ipc/calls/driver_errors.inc"
#undef ERROR
  }
  return nullptr;
}

CUresult Answer(const char* text, const char** out) {
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = text;
  return text != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult cuInit(unsigned int flags) {
  if (flags != 0) return Fail(CUDA_ERROR_INVALID_VALUE, "flags must be 0");
  return Driver::Init();
}

CUresult cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *version = kDriverVersion;
  return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char** text) {
  return Answer(ErrorName(error), text);
}

CUresult cuGetErrorString(CUresult error, const char** text) {
  return Answer(ErrorText(error), text);
}

// The private tables behind this call are no documented interface.
CUresult cuGetExportTable(const void** table, const CUuuid* id) {
  if (table != nullptr) *table = nullptr;
  return Fail(
      CUDA_ERROR_NOT_SUPPORTED,
      "private tables are not provided; a program with a static CUDA runtime must be rebuilt "
      "with --cudart shared");
}

CUresult cuLogsRegisterCallback(CUlogsCallback callback, void* data, CUlogsCallbackHandle* handle) {
  if (callback == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const uint64_t id = ErrorLog::Get().Register(callback, data);
  if (handle != nullptr) *handle = reinterpret_cast<CUlogsCallbackHandle>(id);
  return CUDA_SUCCESS;
}

CUresult cuLogsUnregisterCallback(CUlogsCallbackHandle handle) {
  const uint64_t id = reinterpret_cast<uint64_t>(handle);
  return ErrorLog::Get().Unregister(id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLogsCurrent(CUlogIterator* iterator, unsigned int flags) {
  if (iterator == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *iterator = ErrorLog::Get().Current();
  return CUDA_SUCCESS;
}

CUresult cuLogsDumpToFile(CUlogIterator* iterator, const char* path, unsigned int flags) {
  if (path == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  FILE* const file = std::fopen(path, "w");
  if (file == nullptr) return CUDA_ERROR_OPERATING_SYSTEM;
  const std::string text = ErrorLog::Get().Dump(iterator, kLogFileBytesMax);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fclose(file) == 0 && written ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

CUresult cuLogsDumpToMemory(CUlogIterator* iterator, char* buffer, size_t* size,
                            unsigned int flags) {
  if (buffer == nullptr || size == nullptr || *size == 0 || flags != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const std::string text = ErrorLog::Get().Dump(iterator, *size - 1);
  std::memcpy(buffer, text.c_str(), text.size() + 1);
  *size = text.size();
  return CUDA_SUCCESS;
}

CUresult cuProfilerInitialize(const char*, const char*, CUoutput_mode) {
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult cuProfilerStart() { return CUDA_SUCCESS; }  // no profiler listens, which CUDA allows

CUresult cuProfilerStop() { return CUDA_SUCCESS; }

}  // namespace softgpu::api
