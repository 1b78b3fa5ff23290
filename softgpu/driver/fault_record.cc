#include "softgpu/driver/fault_record.h"

#include <atomic>
#include <mutex>

#include "softgpu/driver/extension.h"

namespace softgpu {
namespace {

struct FaultRecord {
  std::mutex mutex;
  CUresult code = CUDA_SUCCESS;
  CUstream stream = nullptr;
  std::string text;
};

FaultRecord& Record() {
  static FaultRecord* const record = new FaultRecord;  // outlives threads that fault at exit
  return *record;
}

}  // namespace

void RecordFault(CUresult code, CUstream stream, const std::string& text) {
  FaultRecord& record = Record();
  const std::lock_guard<std::mutex> lock(record.mutex);
  if (record.code != CUDA_SUCCESS) return;
  record.code = code;
  record.stream = stream;
  record.text = text;
}

}  // namespace softgpu

extern "C" __attribute__((visibility("default"))) CUresult softgpuGetFault(CUstream* stream,
                                                                           const char** text) {
  softgpu::FaultRecord& record = softgpu::Record();
  const std::lock_guard<std::mutex> lock(record.mutex);
  *stream = record.stream;
  *text = record.text.c_str();
  return record.code;
}
