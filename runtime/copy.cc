// Copies and fills of linear memory. Copies that involve arrays are in array.cc.
#include <cstring>

#include "runtime/api.h"
#include "runtime/context.h"
#include "runtime/copy.h"
#include "runtime/driver.h"

namespace runtime {
namespace {

CUmemorytype HostSide(cudaMemcpyKind kind) {
  return kind == cudaMemcpyDefault ? CU_MEMORYTYPE_UNIFIED : CU_MEMORYTYPE_HOST;
}

CUmemorytype DeviceSide(cudaMemcpyKind kind) {
  return kind == cudaMemcpyDefault ? CU_MEMORYTYPE_UNIFIED : CU_MEMORYTYPE_DEVICE;
}

}  // namespace

bool IsCopyKind(cudaMemcpyKind kind) {
  return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault;
}

CUmemorytype SourceType(cudaMemcpyKind kind) {
  const bool host = kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice;
  return host ? HostSide(kind) : DeviceSide(kind);
}

CUmemorytype TargetType(cudaMemcpyKind kind) {
  const bool host = kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost;
  return host ? HostSide(kind) : DeviceSide(kind);
}

namespace {

cudaError_t Copy2D(CUDA_MEMCPY2D* copy, void* target, size_t target_pitch, const void* source,
                   size_t source_pitch, size_t width, size_t height, cudaMemcpyKind kind) {
  if (!IsCopyKind(kind)) return cudaErrorInvalidMemcpyDirection;
  if (width > target_pitch || width > source_pitch) return cudaErrorInvalidPitchValue;
  *copy = {};
  copy->srcMemoryType = SourceType(kind);
  copy->srcHost = source;
  copy->srcDevice = DeviceAddress(source);
  copy->srcPitch = source_pitch;
  copy->dstMemoryType = TargetType(kind);
  copy->dstHost = target;
  copy->dstDevice = DeviceAddress(target);
  copy->dstPitch = target_pitch;
  copy->WidthInBytes = width;
  copy->Height = height;
  return cudaSuccess;
}

}  // namespace

namespace api {

cudaError_t cudaMemcpy(void* target, const void* source, size_t bytes, cudaMemcpyKind kind) {
  if (!IsCopyKind(kind)) return cudaErrorInvalidMemcpyDirection;
  if (bytes == 0) return cudaSuccess;
  if (target == nullptr || source == nullptr) return cudaErrorInvalidValue;
  switch (kind) {
    case cudaMemcpyHostToHost:
      std::memcpy(target, source, bytes);
      return cudaSuccess;
    case cudaMemcpyHostToDevice:
      return Driver().cuMemcpyHtoD_v2(DeviceAddress(target), source, bytes);
    case cudaMemcpyDeviceToHost:
      return Driver().cuMemcpyDtoH_v2(target, DeviceAddress(source), bytes);
    case cudaMemcpyDeviceToDevice:
      return Driver().cuMemcpyDtoD_v2(DeviceAddress(target), DeviceAddress(source), bytes);
    default:
      return Driver().cuMemcpy(DeviceAddress(target), DeviceAddress(source), bytes);
  }
}

cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  if (!IsCopyKind(kind)) return cudaErrorInvalidMemcpyDirection;
  if (bytes == 0) return cudaSuccess;
  if (target == nullptr || source == nullptr) return cudaErrorInvalidValue;
  switch (kind) {
    case cudaMemcpyHostToDevice:
      return Driver().cuMemcpyHtoDAsync_v2(DeviceAddress(target), source, bytes, stream);
    case cudaMemcpyDeviceToHost:
      return Driver().cuMemcpyDtoHAsync_v2(target, DeviceAddress(source), bytes, stream);
    case cudaMemcpyDeviceToDevice:
      return Driver().cuMemcpyDtoDAsync_v2(DeviceAddress(target), DeviceAddress(source), bytes,
                                           stream);
    default:  // between host addresses too: the driver keeps the stream's order
      return Driver().cuMemcpyAsync(DeviceAddress(target), DeviceAddress(source), bytes, stream);
  }
}

cudaError_t cudaMemcpy2D(void* target, size_t target_pitch, const void* source, size_t source_pitch,
                         size_t width, size_t height, cudaMemcpyKind kind) {
  CUDA_MEMCPY2D copy;
  const cudaError_t error =
      Copy2D(&copy, target, target_pitch, source, source_pitch, width, height, kind);
  if (error != cudaSuccess || width == 0 || height == 0) return error;
  return Driver().cuMemcpy2DUnaligned_v2(&copy);
}

cudaError_t cudaMemcpy2DAsync(void* target, size_t target_pitch, const void* source,
                              size_t source_pitch, size_t width, size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream) {
  CUDA_MEMCPY2D copy;
  const cudaError_t error =
      Copy2D(&copy, target, target_pitch, source, source_pitch, width, height, kind);
  if (error != cudaSuccess || width == 0 || height == 0) return error;
  return Driver().cuMemcpy2DAsync_v2(&copy, stream);
}

cudaError_t cudaMemcpyPeer(void* target, int target_device, const void* source, int source_device,
                           size_t bytes) {
  CUcontext to = nullptr, from = nullptr;
  cudaError_t error = PrimaryContext(target_device, &to);
  if (error == cudaSuccess) error = PrimaryContext(source_device, &from);
  if (error != cudaSuccess || bytes == 0) return error;
  return Driver().cuMemcpyPeer(DeviceAddress(target), to, DeviceAddress(source), from, bytes);
}

cudaError_t cudaMemcpyPeerAsync(void* target, int target_device, const void* source,
                                int source_device, size_t bytes, cudaStream_t stream) {
  CUcontext to = nullptr, from = nullptr;
  cudaError_t error = PrimaryContext(target_device, &to);
  if (error == cudaSuccess) error = PrimaryContext(source_device, &from);
  if (error != cudaSuccess || bytes == 0) return error;
  return Driver().cuMemcpyPeerAsync(DeviceAddress(target), to, DeviceAddress(source), from, bytes,
                                    stream);
}

cudaError_t cudaMemset(void* target, int value, size_t bytes) {
  if (bytes == 0) return cudaSuccess;
  return Driver().cuMemsetD8_v2(DeviceAddress(target), static_cast<unsigned char>(value), bytes);
}

cudaError_t cudaMemsetAsync(void* target, int value, size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  return Driver().cuMemsetD8Async(DeviceAddress(target), static_cast<unsigned char>(value), bytes,
                                  stream);
}

cudaError_t cudaMemset2D(void* target, size_t pitch, int value, size_t width, size_t height) {
  if (width == 0 || height == 0) return cudaSuccess;
  return Driver().cuMemsetD2D8_v2(DeviceAddress(target), pitch, static_cast<unsigned char>(value),
                                  width, height);
}

cudaError_t cudaMemset2DAsync(void* target, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream) {
  if (width == 0 || height == 0) return cudaSuccess;
  return Driver().cuMemsetD2D8Async(DeviceAddress(target), pitch, static_cast<unsigned char>(value),
                                    width, height, stream);
}

// The slices of a box lie pitch * ysize apart. Where it fills them they are one tall plane.
cudaError_t cudaMemset3DAsync(cudaPitchedPtr target, int value, cudaExtent extent,
                              cudaStream_t stream) {
  const size_t slice = target.pitch * target.ysize;
  char* const start = static_cast<char*>(target.ptr);
  if (extent.height == target.ysize) {
    return api::cudaMemset2DAsync(start, target.pitch, value, extent.width,
                                  extent.height * extent.depth, stream);
  }
  for (size_t z = 0; z < extent.depth; ++z) {
    const cudaError_t error = api::cudaMemset2DAsync(start + z * slice, target.pitch, value,
                                                     extent.width, extent.height, stream);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

cudaError_t cudaMemset3D(cudaPitchedPtr target, int value, cudaExtent extent) {
  return api::cudaMemset3DAsync(target, value, extent, cudaStreamLegacy);
}

}  // namespace api
}  // namespace runtime
