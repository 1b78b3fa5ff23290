// Copies between one row of an array and something else.
#include "shim/driver/copies.h"
#include "shim/driver/local.h"

namespace local {
namespace {

struct RowEnd {
  CUmemorytype type;
  CUarray array;
  CUdeviceptr device;
  const void* host;
  size_t x;
};

RowEnd OfArray(CUarray array, size_t x) { return {CU_MEMORYTYPE_ARRAY, array, 0, nullptr, x}; }
RowEnd OfDevice(CUdeviceptr at) { return {CU_MEMORYTYPE_DEVICE, nullptr, at, nullptr, 0}; }
RowEnd OfHost(const void* at) { return {CU_MEMORYTYPE_HOST, nullptr, 0, at, 0}; }

CUresult CopyRow(const RowEnd& to, const RowEnd& from, size_t bytes, CUstream stream,
                 bool synchronous) {
  CUDA_MEMCPY3D params = {};
  params.dstMemoryType = to.type;
  params.dstArray = to.array;
  params.dstDevice = to.device;
  params.dstHost = const_cast<void*>(to.host);
  params.dstXInBytes = to.x;
  params.srcMemoryType = from.type;
  params.srcArray = from.array;
  params.srcDevice = from.device;
  params.srcHost = from.host;
  params.srcXInBytes = from.x;
  params.WidthInBytes = bytes;
  params.Height = params.Depth = 1;
  return CopyOneBox(params, stream, synchronous);
}

}  // namespace

CUresult cuMemcpyDtoA_v2(CUarray to, size_t x, CUdeviceptr from, size_t bytes) {
  return CopyRow(OfArray(to, x), OfDevice(from), bytes, nullptr, true);
}
CUresult cuMemcpyAtoD_v2(CUdeviceptr to, CUarray from, size_t x, size_t bytes) {
  return CopyRow(OfDevice(to), OfArray(from, x), bytes, nullptr, true);
}
CUresult cuMemcpyHtoA_v2(CUarray to, size_t x, const void* from, size_t bytes) {
  return CopyRow(OfArray(to, x), OfHost(from), bytes, nullptr, true);
}
CUresult cuMemcpyAtoH_v2(void* to, CUarray from, size_t x, size_t bytes) {
  return CopyRow(OfHost(to), OfArray(from, x), bytes, nullptr, true);
}
CUresult cuMemcpyAtoA_v2(CUarray to, size_t to_x, CUarray from, size_t from_x, size_t bytes) {
  return CopyRow(OfArray(to, to_x), OfArray(from, from_x), bytes, nullptr, true);
}
CUresult cuMemcpyHtoAAsync_v2(CUarray to, size_t x, const void* from, size_t bytes,
                              CUstream stream) {
  return CopyRow(OfArray(to, x), OfHost(from), bytes, stream, false);
}
CUresult cuMemcpyAtoHAsync_v2(void* to, CUarray from, size_t x, size_t bytes, CUstream stream) {
  return CopyRow(OfHost(to), OfArray(from, x), bytes, stream, false);
}

}  // namespace local
