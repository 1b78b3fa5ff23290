// The parameters of copies between rows and boxes: the driver's structures name alike what they
// have in common. Thread safety: pure functions.
#pragma once

#include "ipc/calls/vendor.h"

#include <algorithm>
#include <cstddef>

namespace ipc {

// What the copy has in common with a copy of a box, as a box of one slice at the origin.
template <class Parameters>
CUDA_MEMCPY3D OneSlice(const Parameters& copy) {
  CUDA_MEMCPY3D box = {};
  box.srcXInBytes = copy.srcXInBytes;
  box.srcY = copy.srcY;
  box.srcMemoryType = copy.srcMemoryType;
  box.srcHost = copy.srcHost;
  box.srcDevice = copy.srcDevice;
  box.srcArray = copy.srcArray;
  box.srcPitch = copy.srcPitch;
  box.dstXInBytes = copy.dstXInBytes;
  box.dstY = copy.dstY;
  box.dstMemoryType = copy.dstMemoryType;
  box.dstHost = copy.dstHost;
  box.dstDevice = copy.dstDevice;
  box.dstArray = copy.dstArray;
  box.dstPitch = copy.dstPitch;
  box.WidthInBytes = copy.WidthInBytes;
  box.Height = copy.Height;
  box.Depth = 1;
  return box;
}

// The box of a copy between devices, whose contexts say nothing that addresses don't say.
inline CUDA_MEMCPY3D WithoutContexts(const CUDA_MEMCPY3D_PEER& copy) {
  CUDA_MEMCPY3D box = OneSlice(copy);
  box.srcZ = copy.srcZ;
  box.srcHeight = copy.srcHeight;
  box.dstZ = copy.dstZ;
  box.dstHeight = copy.dstHeight;
  box.Depth = copy.Depth;
  return box;
}

// One end of a copy between one row of an array and something else.
struct RowEnd {
  CUmemorytype type;
  CUarray array;
  CUdeviceptr device;
  const void* host;
  size_t x;
};

inline RowEnd OfArray(CUarray array, size_t x) {
  return {CU_MEMORYTYPE_ARRAY, array, 0, nullptr, x};
}
inline RowEnd OfDevice(CUdeviceptr at) { return {CU_MEMORYTYPE_DEVICE, nullptr, at, nullptr, 0}; }
inline RowEnd OfHost(const void* at) { return {CU_MEMORYTYPE_HOST, nullptr, 0, at, 0}; }

inline CUDA_MEMCPY3D RowCopy(const RowEnd& to, const RowEnd& from, size_t bytes) {
  CUDA_MEMCPY3D box = {};
  box.dstMemoryType = to.type;
  box.dstArray = to.array;
  box.dstDevice = to.device;
  box.dstHost = const_cast<void*>(to.host);
  box.dstXInBytes = to.x;
  box.srcMemoryType = from.type;
  box.srcArray = from.array;
  box.srcDevice = from.device;
  box.srcHost = from.host;
  box.srcXInBytes = from.x;
  box.WidthInBytes = bytes;
  box.Height = box.Depth = 1;
  return box;
}

// Of a batch: true when an attribute wants that sources may change as soon as the call returns.
inline bool ReadsDuringCall(const CUmemcpyAttributes* attributes, size_t count) {
  return std::any_of(attributes, attributes + count, [](const CUmemcpyAttributes& attribute) {
    return attribute.srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
  });
}

}  // namespace ipc
