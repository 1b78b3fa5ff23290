// Copies and fills: finding the stream and the memory, then shim/copy.h.
#include "shim/copy.h"

#include <cstdint>

#include "ipc/calls/copy_params.h"
#include "shim/array_copy.h"
#include "shim/copy_box.h"
#include "shim/driver/copies.h"
#include "shim/driver/local.h"
#include "shim/driver/ready.h"
#include "shim/graphs/capture.h"
#include "shim/send.h"
#include "shim/streams.h"
#include "shim/sync.h"

namespace local {
namespace {

using shim::Stream;
using shim::Streams;

uint64_t Bits(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

// The call's result when the stream captures.
std::optional<CUresult> Captured(const CUDA_MEMCPY3D& params, bool asynchronous,
                                 const Stream& stream) {
  const CUresult result = shim::CheckCopy(params);
  const bool empty = params.WidthInBytes == 0 || params.Height == 0 || params.Depth == 0;
  if (result != CUDA_SUCCESS || empty) return result;
  if (!asynchronous) return shim::graphs::RefuseWork(stream);
  return shim::graphs::CaptureWork(stream, shim::graphs::MemcpyWork{params});
}

// A linear copy, with what the call's name says of its ends.
struct Line {
  shim::Copy copy;
  CUmemorytype to = CU_MEMORYTYPE_UNIFIED;
  CUmemorytype from = CU_MEMORYTYPE_UNIFIED;
  bool asynchronous = true;  // by name: a copy that is done later may be captured

  CUDA_MEMCPY3D Params() const {
    CUDA_MEMCPY3D params = {};
    params.dstMemoryType = to;
    params.dstDevice = copy.to;
    params.dstHost = reinterpret_cast<void*>(copy.to);
    params.srcMemoryType = from;
    params.srcDevice = copy.from;
    params.srcHost = reinterpret_cast<const void*>(copy.from);
    params.WidthInBytes = copy.bytes;
    params.Height = params.Depth = 1;
    return params;
  }
};

// A device end must be one: what the program calls a device address may not be treated as host
// memory.
bool IsWrong(CUmemorytype type, uint64_t address) {
  return type == CU_MEMORYTYPE_DEVICE &&
         shim::Memory::PlaceOf(address) == shim::Memory::Place::kHost;
}

CUresult Linear(const Line& line, CUstream program) {
  Stream* stream = nullptr;
  if (const CUresult result = Streams::Process().UseCurrent(program, &stream);
      result != CUDA_SUCCESS) {
    return result;
  }
  const shim::Copy& copy = line.copy;
  if (copy.bytes != 0 && (IsWrong(line.to, copy.to) || IsWrong(line.from, copy.from)))
    return CUDA_ERROR_INVALID_VALUE;
  if (shim::graphs::AnyCapture()) [[unlikely]] {
    if (const auto captured = Captured(line.Params(), line.asynchronous, *stream)) return *captured;
  }
  return shim::CopyLinear(copy, *stream);
}

// Of cuMemcpy2D, cuMemcpy3D and cuMemcpy3DPeer.
template <class Params>
CUresult Boxes(const Params* copy, CUstream program, bool synchronous) {
  if (copy != nullptr) return CopyOneBox(shim::AsBox(*copy), program, synchronous);
  const CUresult result = Ready();
  return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : result;
}

constexpr CUmemorytype kHost = CU_MEMORYTYPE_HOST, kDevice = CU_MEMORYTYPE_DEVICE,
                       kUnified = CU_MEMORYTYPE_UNIFIED;

}  // namespace

CUresult CopyOneBox(const CUDA_MEMCPY3D& params, CUstream program, bool synchronous) {
  Stream* stream = nullptr;
  if (const CUresult result = Streams::Process().UseCurrent(program, &stream);
      result != CUDA_SUCCESS) {
    return result;
  }
  if (shim::graphs::AnyCapture()) [[unlikely]] {
    if (const auto captured = Captured(params, !synchronous, *stream)) return *captured;
  }
  if (shim::HasArray(params)) return shim::CopyWithArray(params, synchronous, *stream);
  shim::CopyBox box;
  if (const CUresult result = shim::BoxOf(params, &box); result != CUDA_SUCCESS) return result;
  box.rows.synchronous = synchronous;
  return shim::CopyBoxes(box, *stream);
}

// --- linear copies -------------------------------------------------------------------------------

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return Linear({{to, from, bytes, true}, kUnified, kUnified, false}, nullptr);
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return Linear({{to, from, bytes, false}}, stream);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  return Linear({{to, Bits(from), bytes, true}, kDevice, kHost, false}, nullptr);
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return Linear({{to, Bits(from), bytes, false}, kDevice, kHost}, stream);
}

CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  return Linear({{Bits(to), from, bytes, true}, kHost, kDevice, false}, nullptr);
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return Linear({{Bits(to), from, bytes, false}, kHost, kDevice}, stream);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return Linear({{to, from, bytes, false}, kDevice, kDevice, false}, nullptr);
}
CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes) {
  return local::cuMemcpyDtoD_v2(to, from, bytes);
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes,
                           CUstream stream) {
  return Linear({{to, from, bytes, false}, kDevice, kDevice}, stream);
}

// --- pitched copies ------------------------------------------------------------------------------

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) { return Boxes(copy, nullptr, true); }
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) { return Boxes(copy, nullptr, true); }
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return Boxes(copy, stream, false);
}
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) { return Boxes(copy, nullptr, true); }
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
  return Boxes(copy, stream, false);
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy) { return Boxes(copy, nullptr, true); }
CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  return Boxes(copy, stream, false);
}

// --- batches -------------------------------------------------------------------------------------

// In the order of the batch, which is one of the orders that the manual allows.
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                               CUmemcpyAttributes* attributes, size_t* indexes,
                               size_t attribute_count, CUstream program) {
  if (to == nullptr || from == nullptr || sizes == nullptr || count == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (attribute_count > count ||
      (attribute_count != 0 && (attributes == nullptr || indexes == nullptr)))
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const CUresult result = Linear({{to[i], from[i], sizes[i], false}}, program);
    if (result != CUDA_SUCCESS) return result;
  }
  if (!ipc::ReadsDuringCall(attributes, attribute_count)) return CUDA_SUCCESS;
  Stream* stream = nullptr;
  const CUresult result = Streams::Process().UseCurrent(program, &stream);
  return result == CUDA_SUCCESS ? shim::SynchronizeStream(*stream) : result;
}

CUresult cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                            CUmemcpyAttributes* attributes, size_t* indexes, size_t attribute_count,
                            size_t* failed, CUstream stream) {
  if (failed != nullptr) *failed = SIZE_MAX;
  return local::cuMemcpyBatchAsync_v2(to, from, sizes, count, attributes, indexes, attribute_count,
                                      stream);
}

// --- fills: asynchronous towards the host for device memory --------------------------------------

namespace {

template <ipc::Op op, class... A>
CUresult Fill(CUdeviceptr to, uint64_t span, A... rest) {
  Stream* stream = nullptr;
  if (const CUresult result = Streams::Process().UseCurrent(nullptr, &stream);
      result != CUDA_SUCCESS) {
    return result;
  }
  if (span == 0) return CUDA_SUCCESS;
  if (!shim::Memory::IsLive(to, span)) return CUDA_ERROR_INVALID_VALUE;
  if (const auto refused = shim::graphs::RefuseWork(*stream)) return *refused;
  const CUresult result =
      shim::Post<op>(stream->wire, to, rest..., reinterpret_cast<CUstream>(stream->value));
  const bool pinned = shim::Memory::PlaceOf(to) == shim::Memory::Place::kPinned;
  return result == CUDA_SUCCESS && pinned ? shim::SynchronizeStream(*stream) : result;
}

uint64_t Span(size_t pitch, size_t width, size_t height, unsigned element) {
  return width == 0 || height == 0 ? 0 : pitch * (height - 1) + width * element;
}

}  // namespace

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t n) {
  return Fill<ipc::Op::cuMemsetD8Async>(to, n, value, n);
}
CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t n) {
  return Fill<ipc::Op::cuMemsetD16Async>(to, n * 2, value, n);
}
CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, size_t n) {
  return Fill<ipc::Op::cuMemsetD32Async>(to, n * 4, value, n);
}
CUresult cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                         size_t height) {
  return Fill<ipc::Op::cuMemsetD2D8Async>(to, Span(pitch, width, height, 1), pitch, value, width,
                                          height);
}
CUresult cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                          size_t height) {
  return Fill<ipc::Op::cuMemsetD2D16Async>(to, Span(pitch, width, height, 2), pitch, value, width,
                                           height);
}
CUresult cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned value, size_t width,
                          size_t height) {
  return Fill<ipc::Op::cuMemsetD2D32Async>(to, Span(pitch, width, height, 4), pitch, value, width,
                                           height);
}

}  // namespace local
