// The launch interface from before CUDA 4 (ipc/calls/old_launch.h).
#include "ipc/calls/old_launch.h"

#include "shim/driver/local.h"

namespace local {
namespace {

using Old = ipc::OldCalls<&local::cuFuncGetAttribute, &local::cuLaunchKernel>;

}  // namespace

CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z) {
  return Old::SetBlock(function, x, y, z);
}
CUresult cuFuncSetSharedSize(CUfunction function, unsigned bytes) {
  return Old::SetShared(function, bytes);
}

CUresult cuParamSetSize(CUfunction function, unsigned bytes) {
  return Old::SetSize(function, bytes);
}
CUresult cuParamSetv(CUfunction function, int offset, void* from, unsigned bytes) {
  return Old::SetBytes(function, offset, from, bytes);
}
CUresult cuParamSeti(CUfunction function, int offset, unsigned value) {
  return Old::SetBytes(function, offset, &value, sizeof value);
}
CUresult cuParamSetf(CUfunction function, int offset, float value) {
  return Old::SetBytes(function, offset, &value, sizeof value);
}

CUresult cuLaunch(CUfunction function) { return Old::Launch(function, 1, 1, nullptr); }
CUresult cuLaunchGrid(CUfunction function, int width, int height) {
  return Old::Launch(function, width, height, nullptr);
}
CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream) {
  return Old::Launch(function, width, height, stream);
}

}  // namespace local
