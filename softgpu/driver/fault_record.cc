#include "softgpu/driver/fault_record.h"

#include <cstdio>

#include "base/mutex.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/extension.h"

namespace softgpu {
namespace {

struct FaultRecord {
  base::Mutex mutex;
  CUresult code GUARDED_BY(mutex) = CUDA_SUCCESS;
  CUstream stream GUARDED_BY(mutex) = nullptr;
  std::string text GUARDED_BY(mutex);
};

FaultRecord& Record() {
  static FaultRecord* const record = new FaultRecord;  // outlives threads that fault at exit
  return *record;
}

// False: there was one before.
bool KeepFirst(CUresult code, CUstream stream, const std::string& text) {
  FaultRecord& record = Record();
  const base::MutexLock lock(&record.mutex);
  if (record.code != CUDA_SUCCESS) return false;
  record.code = code;
  record.stream = stream;
  record.text = text;
  return true;
}

}  // namespace

void ReportFault(CUresult code, CUstream stream, const std::string& text) {
  const bool first = KeepFirst(code, stream, text);
  ErrorLog::Get().Add(CU_LOG_LEVEL_ERROR, text);
  if (first) std::fprintf(stderr, "softgpu: %s\n", text.c_str());
}

}  // namespace softgpu

extern "C" __attribute__((visibility("default"))) CUresult softgpuGetFault(CUstream* stream,
                                                                           const char** text) {
  softgpu::FaultRecord& record = softgpu::Record();
  const base::MutexLock lock(&record.mutex);
  *stream = record.stream;
  *text = record.text.c_str();
  return record.code;
}
