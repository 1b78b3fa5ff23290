#include "shim/graphs/forwarded.h"

#include <array>

#include "shim/memory.h"

namespace shim::graphs {
namespace {

using ipc::Op;

template <class T>
T At(ipc::Values values, size_t index) {
  return *static_cast<const T*>(values[index]);
}

struct Fill {
  Op op, per_thread;
  unsigned element_bytes;
  bool rows;
};
constexpr Fill kFills[] = {
    {Op::cuMemsetD8Async, Op::cuMemsetD8Async_ptsz, 1, false},
    {Op::cuMemsetD16Async, Op::cuMemsetD16Async_ptsz, 2, false},
    {Op::cuMemsetD32Async, Op::cuMemsetD32Async_ptsz, 4, false},
    {Op::cuMemsetD2D8Async, Op::cuMemsetD2D8Async_ptsz, 1, true},
    {Op::cuMemsetD2D16Async, Op::cuMemsetD2D16Async_ptsz, 2, true},
    {Op::cuMemsetD2D32Async, Op::cuMemsetD2D32Async_ptsz, 4, true},
};

unsigned NumberAt(ipc::Values values, size_t index, unsigned bytes) {
  if (bytes == 1) return At<unsigned char>(values, index);
  return bytes == 2 ? At<unsigned short>(values, index) : At<unsigned>(values, index);
}

std::optional<CUresult> CaptureFill(const Fill& fill, ipc::Values values, const Stream& stream) {
  CUDA_MEMSET_NODE_PARAMS_v1 params = {};
  size_t next = 0;
  params.dst = At<CUdeviceptr>(values, next++);
  if (fill.rows) params.pitch = At<size_t>(values, next++);
  params.elementSize = fill.element_bytes;
  params.value = NumberAt(values, next++, fill.element_bytes);
  params.width = At<size_t>(values, next++);
  params.height = fill.rows ? At<size_t>(values, next) : 1;
  if (params.width == 0 || params.height == 0) return CUDA_SUCCESS;
  const size_t span = (params.height - 1) * params.pitch + params.width * params.elementSize;
  if (!Memory::IsLive(params.dst, span)) return CUDA_ERROR_INVALID_VALUE;
  return CaptureWork(stream, MemsetWork{params});
}

// (to, from, bytes, stream)
std::optional<CUresult> CaptureCopy(ipc::Values values, const Stream& stream) {
  CUDA_MEMCPY3D params = {};
  params.dstMemoryType = params.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  params.dstDevice = At<CUdeviceptr>(values, 0);
  params.srcDevice = At<CUdeviceptr>(values, 1);
  params.WidthInBytes = At<size_t>(values, 2);
  params.Height = params.Depth = 1;
  if (params.WidthInBytes == 0) return CUDA_SUCCESS;
  if (!Memory::IsLive(params.dstDevice, params.WidthInBytes) ||
      !Memory::IsLive(params.srcDevice, params.WidthInBytes)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CaptureWork(stream, MemcpyWork{params});
}

// (stream, address, value, flags)
std::optional<CUresult> CaptureMemoryOperation(CUstreamBatchMemOpType type, ipc::Values values,
                                               const Stream& stream) {
  const bool wide =
      type == CU_STREAM_MEM_OP_WAIT_VALUE_64 || type == CU_STREAM_MEM_OP_WRITE_VALUE_64;
  CUstreamBatchMemOpParams item = {};
  item.waitValue.operation = type;
  item.waitValue.address = At<CUdeviceptr>(values, 1);
  item.waitValue.value64 = wide ? At<cuuint64_t>(values, 2) : At<cuuint32_t>(values, 2);
  item.waitValue.flags = At<unsigned>(values, 3);
  return CaptureWork(stream, MemoryWork{{item}});
}

std::optional<CUresult> CaptureWait(ipc::Values values, const Stream& stream) {
  const CUevent program = At<CUevent>(values, 1);
  const Event* const event = State::Process().events.Find(reinterpret_cast<uint64_t>(program));
  if (event == nullptr) return std::nullopt;  // refused where it is encoded
  if (!AnyCapture() && !event->captured.load(std::memory_order_acquire)) return std::nullopt;
  return WaitInCapture(stream, program, *event, At<unsigned>(values, 2));
}

}  // namespace

std::optional<CUresult> CaptureForwarded(Op op, ipc::Values values, const Stream& stream) {
  switch (op) {
    case Op::cuStreamWaitEvent:
    case Op::cuStreamWaitEvent_ptsz:
      return CaptureWait(values, stream);
    case Op::cuMemcpyDtoDAsync_v2:
    case Op::cuMemcpyDtoDAsync_v2_ptsz:
      return CaptureCopy(values, stream);
    case Op::cuStreamWaitValue32_v2:
    case Op::cuStreamWaitValue32_v2_ptsz:
      return CaptureMemoryOperation(CU_STREAM_MEM_OP_WAIT_VALUE_32, values, stream);
    case Op::cuStreamWaitValue64_v2:
    case Op::cuStreamWaitValue64_v2_ptsz:
      return CaptureMemoryOperation(CU_STREAM_MEM_OP_WAIT_VALUE_64, values, stream);
    case Op::cuStreamWriteValue32_v2:
    case Op::cuStreamWriteValue32_v2_ptsz:
      return CaptureMemoryOperation(CU_STREAM_MEM_OP_WRITE_VALUE_32, values, stream);
    case Op::cuStreamWriteValue64_v2:
    case Op::cuStreamWriteValue64_v2_ptsz:
      return CaptureMemoryOperation(CU_STREAM_MEM_OP_WRITE_VALUE_64, values, stream);
    default:
      break;
  }
  for (const Fill& fill : kFills) {
    if (op == fill.op || op == fill.per_thread) return CaptureFill(fill, values, stream);
  }
  return std::nullopt;
}

}  // namespace shim::graphs
