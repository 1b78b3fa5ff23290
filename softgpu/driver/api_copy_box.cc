// Two- and three-dimensional copies between linear memory, and batches of copies.
#include <cstdint>

#include "softgpu/driver/api.h"
#include "softgpu/driver/copy.h"
#include "softgpu/driver/error_log.h"

namespace softgpu::api {
namespace {

// One side as the parameter structures spell it.
struct Side {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  size_t x, y, z, pitch, height;
};

bool Resolve(const Side& side, CopySide* out) {
  switch (side.type) {
    case CU_MEMORYTYPE_HOST:
      out->memory = CopySide::Memory::kHost;
      out->address = reinterpret_cast<uint64_t>(side.host);
      break;
    case CU_MEMORYTYPE_DEVICE:
      out->memory = CopySide::Memory::kDevice;
      out->address = side.device;
      break;
    case CU_MEMORYTYPE_UNIFIED:
      out->memory = CopySide::Memory::kUnified;
      out->address = side.device;
      break;
    default:
      return false;
  }
  out->pitch = side.pitch;
  out->slice = side.pitch * side.height;
  out->address += side.z * out->slice + side.y * out->pitch + side.x;
  return true;
}

struct Extent3D {
  size_t width, height, depth;
};

CUresult Copy(const Side& destination, const Side& source, Extent3D extent, CUstream stream,
              CopyMode mode) {
  CopyBox box;
  if (!Resolve(destination, &box.destination) || !Resolve(source, &box.source)) {
    return Fail(CUDA_ERROR_NOT_SUPPORTED, "copies from and to arrays are not supported");
  }
  box.width = extent.width;
  box.height = extent.height;
  box.depth = extent.depth;
  // A pitch of 0 stands for packed rows, a height of 0 for planes as high as the copy.
  for (CopySide* side : {&box.destination, &box.source}) {
    if (side->pitch == 0) side->pitch = box.width;
    if (side->slice == 0) side->slice = side->pitch * box.height;
  }
  return SubmitCopy(box, stream, mode);
}

CUresult Copy2D(const CUDA_MEMCPY2D* copy, CUstream stream, CopyMode mode) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Side destination = {copy->dstMemoryType, copy->dstHost, copy->dstDevice, copy->dstXInBytes,
                            copy->dstY,          0,             copy->dstPitch,  0};
  const Side source = {copy->srcMemoryType, copy->srcHost, copy->srcDevice, copy->srcXInBytes,
                       copy->srcY,          0,             copy->srcPitch,  0};
  return Copy(destination, source, {copy->WidthInBytes, copy->Height, 1}, stream, mode);
}

template <class Parameters>
CUresult Copy3D(const Parameters* copy, CUstream stream, CopyMode mode) {
  if (copy == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Side destination = {copy->dstMemoryType, copy->dstHost, copy->dstDevice, copy->dstXInBytes,
                            copy->dstY,          copy->dstZ,    copy->dstPitch,  copy->dstHeight};
  const Side source = {copy->srcMemoryType, copy->srcHost, copy->srcDevice, copy->srcXInBytes,
                       copy->srcY,          copy->srcZ,    copy->srcPitch,  copy->srcHeight};
  return Copy(destination, source, {copy->WidthInBytes, copy->Height, copy->Depth}, stream, mode);
}

constexpr CopyMode kSync = CopyMode::kSynchronous, kAsync = CopyMode::kAsynchronous;

}  // namespace

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) { return Copy2D(copy, nullptr, kSync); }

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) { return Copy2D(copy, nullptr, kSync); }

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) {
  return Copy2D(copy, stream, kAsync);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) { return Copy3D(copy, nullptr, kSync); }

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) {
  return Copy3D(copy, stream, kAsync);
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy) { return Copy3D(copy, nullptr, kSync); }

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  return Copy3D(copy, stream, kAsync);
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                               CUmemcpyAttributes*, size_t*, size_t, CUstream stream) {
  if (to == nullptr || from == nullptr || sizes == nullptr || count == 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    CopyBox box;
    box.destination.address = to[i];
    box.source.address = from[i];
    box.width = sizes[i];
    const CUresult result = SubmitCopy(box, stream, kAsync);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                            CUmemcpyAttributes* attributes, size_t* indexes, size_t attribute_count,
                            size_t* failed, CUstream stream) {
  if (failed != nullptr) *failed = SIZE_MAX;
  return api::cuMemcpyBatchAsync_v2(to, from, sizes, count, attributes, indexes, attribute_count, stream);
}

}  // namespace softgpu::api
