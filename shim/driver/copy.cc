// Copies and fills: finding the stream and the memory, then shim/copy.h.
#include "shim/copy.h"

#include "shim/driver/local.h"
#include "shim/send.h"
#include "shim/sync.h"

namespace local {
namespace {

using shim::State;
using shim::Stream;

uint64_t Bits(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

CUresult Linear(uint64_t to, uint64_t from, size_t bytes, CUstream program, bool synchronous) {
  Stream* stream = nullptr;
  if (const CUresult result = State::Process().CurrentStream(program, &stream);
      result != CUDA_SUCCESS) {
    return result;
  }
  return shim::CopyLinear({to, from, bytes, synchronous}, *stream);
}

// A device end must be one: what the program calls a device address may not be treated as host
// memory.
bool IsDevice(CUdeviceptr address) {
  return shim::Memory::PlaceOf(address) != shim::Memory::Place::kHost;
}

// --- structures of pitched copies ----------------------------------------------------------------

struct End {
  uint64_t address;
  size_t pitch;
  CUresult result;
};

End EndOf(CUmemorytype type, const void* host, CUdeviceptr device, CUarray array, size_t pitch) {
  if (type == CU_MEMORYTYPE_ARRAY || array != nullptr) return {0, 0, CUDA_ERROR_NOT_SUPPORTED};
  if (type == CU_MEMORYTYPE_HOST) return {Bits(host), pitch, CUDA_SUCCESS};
  if (type == CU_MEMORYTYPE_UNIFIED) return {device, pitch, CUDA_SUCCESS};
  return {device, pitch, IsDevice(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE};
}

CUresult Rows(const CUDA_MEMCPY2D* copy, CUstream program, bool synchronous) {
  Stream* stream = nullptr;
  if (const CUresult result = State::Process().CurrentStream(program, &stream);
      result != CUDA_SUCCESS) {
    return result;
  }
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const End to =
      EndOf(copy->dstMemoryType, copy->dstHost, copy->dstDevice,
            copy->dstMemoryType == CU_MEMORYTYPE_ARRAY ? copy->dstArray : nullptr, copy->dstPitch);
  const End from =
      EndOf(copy->srcMemoryType, copy->srcHost, copy->srcDevice,
            copy->srcMemoryType == CU_MEMORYTYPE_ARRAY ? copy->srcArray : nullptr, copy->srcPitch);
  if (to.result != CUDA_SUCCESS) return to.result;
  if (from.result != CUDA_SUCCESS) return from.result;
  shim::PitchedCopy rows;
  rows.to_pitch = to.pitch != 0 ? to.pitch : copy->WidthInBytes;
  rows.from_pitch = from.pitch != 0 ? from.pitch : copy->WidthInBytes;
  rows.to = to.address + copy->dstY * rows.to_pitch + copy->dstXInBytes;
  rows.from = from.address + copy->srcY * rows.from_pitch + copy->srcXInBytes;
  rows.width = copy->WidthInBytes;
  rows.height = copy->Height;
  rows.synchronous = synchronous;
  return shim::CopyRows(rows, *stream);
}

CUresult Slices(const CUDA_MEMCPY3D* copy, CUstream program, bool synchronous) {
  Stream* stream = nullptr;
  if (const CUresult result = State::Process().CurrentStream(program, &stream);
      result != CUDA_SUCCESS) {
    return result;
  }
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (copy->srcLOD != 0 || copy->dstLOD != 0) return CUDA_ERROR_NOT_SUPPORTED;
  const End to =
      EndOf(copy->dstMemoryType, copy->dstHost, copy->dstDevice,
            copy->dstMemoryType == CU_MEMORYTYPE_ARRAY ? copy->dstArray : nullptr, copy->dstPitch);
  const End from =
      EndOf(copy->srcMemoryType, copy->srcHost, copy->srcDevice,
            copy->srcMemoryType == CU_MEMORYTYPE_ARRAY ? copy->srcArray : nullptr, copy->srcPitch);
  if (to.result != CUDA_SUCCESS) return to.result;
  if (from.result != CUDA_SUCCESS) return from.result;
  shim::PitchedCopy rows;
  rows.to_pitch = to.pitch != 0 ? to.pitch : copy->WidthInBytes;
  rows.from_pitch = from.pitch != 0 ? from.pitch : copy->WidthInBytes;
  const size_t to_slice = rows.to_pitch * (copy->dstHeight != 0 ? copy->dstHeight : copy->Height);
  const size_t from_slice =
      rows.from_pitch * (copy->srcHeight != 0 ? copy->srcHeight : copy->Height);
  rows.width = copy->WidthInBytes;
  rows.height = copy->Height;
  rows.synchronous = synchronous;
  for (size_t slice = 0; slice < copy->Depth; ++slice) {
    rows.to = to.address + (copy->dstZ + slice) * to_slice + copy->dstY * rows.to_pitch +
              copy->dstXInBytes;
    rows.from = from.address + (copy->srcZ + slice) * from_slice + copy->srcY * rows.from_pitch +
                copy->srcXInBytes;
    if (const CUresult result = shim::CopyRows(rows, *stream); result != CUDA_SUCCESS)
      return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace

// --- linear copies -------------------------------------------------------------------------------

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return Linear(to, from, bytes, nullptr, true);
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return Linear(to, from, bytes, stream, false);
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  return local::cuMemcpyHtoDAsync_v2(to, from, bytes,
                                     nullptr);  // the program's bytes are read before it returns
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  Stream* found = nullptr;
  if (const CUresult result = State::Process().CurrentStream(stream, &found);
      result != CUDA_SUCCESS)
    return result;
  if (bytes != 0 && !IsDevice(to)) return CUDA_ERROR_INVALID_VALUE;
  return shim::CopyLinear({to, Bits(from), bytes, false}, *found);
}

CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  Stream* found = nullptr;
  if (const CUresult result = State::Process().CurrentStream(nullptr, &found);
      result != CUDA_SUCCESS)
    return result;
  if (bytes != 0 && !IsDevice(from)) return CUDA_ERROR_INVALID_VALUE;
  return shim::CopyLinear({Bits(to), from, bytes, true}, *found);
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  Stream* found = nullptr;
  if (const CUresult result = State::Process().CurrentStream(stream, &found);
      result != CUDA_SUCCESS)
    return result;
  if (bytes != 0 && !IsDevice(from)) return CUDA_ERROR_INVALID_VALUE;
  return shim::CopyLinear({Bits(to), from, bytes, false}, *found);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  if (bytes != 0 && (!IsDevice(to) || !IsDevice(from))) return CUDA_ERROR_INVALID_VALUE;
  return Linear(to, from, bytes, nullptr, false);
}
CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes) {
  return local::cuMemcpyDtoD_v2(to, from, bytes);
}
CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes,
                           CUstream stream) {
  if (bytes != 0 && (!IsDevice(to) || !IsDevice(from))) return CUDA_ERROR_INVALID_VALUE;
  return Linear(to, from, bytes, stream, false);
}

// --- pitched copies ------------------------------------------------------------------------------

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) { return Rows(copy, nullptr, true); }
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) { return Rows(copy, nullptr, true); }
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return Rows(copy, stream, false);
}
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) { return Slices(copy, nullptr, true); }
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
  return Slices(copy, stream, false);
}

// --- fills: asynchronous towards the host for device memory --------------------------------------

namespace {

template <ipc::Op op, class... A>
CUresult Fill(CUdeviceptr to, uint64_t span, A... rest) {
  Stream* stream = nullptr;
  if (const CUresult result = State::Process().CurrentStream(nullptr, &stream);
      result != CUDA_SUCCESS) {
    return result;
  }
  if (span == 0) return CUDA_SUCCESS;
  if (!shim::Memory::IsLive(to, span)) return CUDA_ERROR_INVALID_VALUE;
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
