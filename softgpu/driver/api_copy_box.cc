// Two- and three-dimensional copies, rows of arrays, and batches of copies.
#include <cstdint>

#include "ipc/calls/copy_params.h"
#include "softgpu/driver/api.h"
#include "softgpu/driver/copy.h"

namespace softgpu::api {
namespace {

CUresult Copy(const CUDA_MEMCPY3D& params, CUstream stream, CopyMode mode) {
  CopyBox box;
  const CUresult result = BoxOf(params, &box);
  return result == CUDA_SUCCESS ? SubmitCopy(box, stream, mode) : result;
}

CUresult Copy2D(const CUDA_MEMCPY2D* copy, CUstream stream, CopyMode mode) {
  return copy != nullptr ? Copy(ipc::OneSlice(*copy), stream, mode) : CUDA_ERROR_INVALID_VALUE;
}

CUresult Copy3DPeer(const CUDA_MEMCPY3D_PEER* copy, CUstream stream, CopyMode mode) {
  return copy != nullptr ? Copy(ipc::WithoutContexts(*copy), stream, mode)
                         : CUDA_ERROR_INVALID_VALUE;
}

using ipc::OfArray;
using ipc::OfDevice;
using ipc::OfHost;

CUresult CopyRow(const ipc::RowEnd& to, const ipc::RowEnd& from, size_t bytes, CUstream stream,
                 CopyMode mode) {
  return Copy(ipc::RowCopy(to, from, bytes), stream, mode);
}

CUresult Copy3D(const CUDA_MEMCPY3D* copy, CUstream stream, CopyMode mode) {
  return copy != nullptr ? Copy(*copy, stream, mode) : CUDA_ERROR_INVALID_VALUE;
}

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

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy) { return Copy3DPeer(copy, nullptr, kSync); }

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  return Copy3DPeer(copy, stream, kAsync);
}

CUresult cuMemcpyDtoA_v2(CUarray to, size_t x, CUdeviceptr from, size_t bytes) {
  return CopyRow(OfArray(to, x), OfDevice(from), bytes, nullptr, kSync);
}

CUresult cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t x, size_t bytes) {
  return CopyRow(OfDevice(to), OfArray(from, x), bytes, nullptr, kSync);
}

CUresult cuMemcpyHtoA_v2(CUarray to, size_t x, const void* from, size_t bytes) {
  return CopyRow(OfArray(to, x), OfHost(from), bytes, nullptr, kSync);
}

CUresult cuMemcpyAtoH_v2(void* to, CUarray from, size_t x, size_t bytes) {
  return CopyRow(OfHost(to), OfArray(from, x), bytes, nullptr, kSync);
}

CUresult cuMemcpyAtoA_v2(CUarray to, size_t to_x, CUarray from, size_t from_x, size_t bytes) {
  return CopyRow(OfArray(to, to_x), OfArray(from, from_x), bytes, nullptr, kSync);
}

CUresult cuMemcpyHtoAAsync_v2(CUarray to, size_t x, const void* from, size_t bytes,
                              CUstream stream) {
  return CopyRow(OfArray(to, x), OfHost(from), bytes, stream, kAsync);
}

CUresult cuMemcpyAtoHAsync_v2(void* to, CUarray from, size_t x, size_t bytes, CUstream stream) {
  return CopyRow(OfHost(to), OfArray(from, x), bytes, stream, kAsync);
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                               CUmemcpyAttributes* attributes, size_t* indexes,
                               size_t attribute_count, CUstream stream) {
  if (to == nullptr || from == nullptr || sizes == nullptr || count == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (attribute_count > count ||
      (attribute_count != 0 && (attributes == nullptr || indexes == nullptr)))
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    CopyBox box;
    box.destination.address = to[i];
    box.source.address = from[i];
    box.width = sizes[i];
    const CUresult result = SubmitCopy(box, stream, kAsync);
    if (result != CUDA_SUCCESS) return result;
  }
  return ipc::ReadsDuringCall(attributes, attribute_count) ? api::cuStreamSynchronize(stream)
                                                           : CUDA_SUCCESS;
}

CUresult cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                            CUmemcpyAttributes* attributes, size_t* indexes, size_t attribute_count,
                            size_t* failed, CUstream stream) {
  if (failed != nullptr) *failed = SIZE_MAX;
  return api::cuMemcpyBatchAsync_v2(to, from, sizes, count, attributes, indexes, attribute_count,
                                    stream);
}

}  // namespace softgpu::api
