// The parameters of copies between rows and boxes: the driver's structures name alike what they
// have in common. Thread safety: pure functions.
#pragma once

#include "ipc/calls/vendor.h"

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

}  // namespace ipc
