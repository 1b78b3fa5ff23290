// Stream memory operations. The first versions differ from the second in nothing here.
#include <memory>
#include <utility>
#include <vector>

#include "softgpu/driver/api.h"
#include "softgpu/driver/capture.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/handles.h"
#include "softgpu/driver/memory_operation.h"
#include "softgpu/driver/stream.h"
#include "softgpu/driver/work.h"

namespace softgpu::api {
namespace {

constexpr unsigned kBatchMax = 256;  // documented

CUresult Submit(CUstream handle, std::vector<CUstreamBatchMemOpParams> items) {
  std::shared_ptr<Stream> stream;
  CUresult result = FindStream(handle, &stream);
  if (result != CUDA_SUCCESS) return result;
  std::unique_ptr<Operation> operation;
  result = MakeMemoryOperation(stream->context(), items, &operation);
  if (result != CUDA_SUCCESS) return result;
  if (IsCapturing(*stream)) return AddToCapture(*stream, MemoryWork{std::move(items)});
  operation->SetStream(handle);
  return SubmitChecked(stream, std::move(operation));
}

CUresult Wait(CUstream handle, CUstreamBatchMemOpType type, CUdeviceptr address, uint64_t value,
              unsigned flags) {
  CUstreamBatchMemOpParams item = {};
  item.waitValue.operation = type;
  item.waitValue.address = address;
  item.waitValue.value64 = value;
  item.waitValue.flags = flags;
  return Submit(handle, {item});
}

CUresult Write(CUstream handle, CUstreamBatchMemOpType type, CUdeviceptr address, uint64_t value) {
  CUstreamBatchMemOpParams item = {};
  item.writeValue.operation = type;
  item.writeValue.address = address;
  item.writeValue.value64 = value;
  return Submit(handle, {item});
}

}  // namespace

CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                unsigned int flags) {
  return Wait(stream, CU_STREAM_MEM_OP_WAIT_VALUE_32, address, value, flags);
}

CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                unsigned int flags) {
  return Wait(stream, CU_STREAM_MEM_OP_WAIT_VALUE_64, address, value, flags);
}

CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value,
                                 unsigned int) {
  return Write(stream, CU_STREAM_MEM_OP_WRITE_VALUE_32, address, value);
}

CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value,
                                 unsigned int) {
  return Write(stream, CU_STREAM_MEM_OP_WRITE_VALUE_64, address, value);
}

CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned int count, CUstreamBatchMemOpParams* items,
                               unsigned int flags) {
  if (items == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (count > kBatchMax)
    return Fail(CUDA_ERROR_INVALID_VALUE, "a batch has at most 256 operations");
  return Submit(stream, {items, items + count});
}

CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
                             unsigned int flags) {
  return api::cuStreamWaitValue32_v2(stream, address, value, flags);
}

CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value,
                             unsigned int flags) {
  return api::cuStreamWaitValue64_v2(stream, address, value, flags);
}

CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value,
                              unsigned int flags) {
  return api::cuStreamWriteValue32_v2(stream, address, value, flags);
}

CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value,
                              unsigned int flags) {
  return api::cuStreamWriteValue64_v2(stream, address, value, flags);
}

CUresult cuStreamBatchMemOp(CUstream stream, unsigned int count, CUstreamBatchMemOpParams* items,
                            unsigned int flags) {
  return api::cuStreamBatchMemOp_v2(stream, count, items, flags);
}

}  // namespace softgpu::api
