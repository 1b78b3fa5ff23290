// One-dimensional copies in all directions, and memsets.
#include <cstdint>

#include "softgpu/driver/api.h"
#include "softgpu/driver/copy.h"
#include "softgpu/driver/handles.h"

namespace softgpu::api {
namespace {

using Memory = CopySide::Memory;

struct Pointers {
  uint64_t destination, source;
};

CUresult Copy(Memory destination, Memory source, Pointers pointers, size_t bytes, CUstream stream,
              CopyMode mode) {
  CopyBox box;
  box.destination = {destination, pointers.destination, 0, 0};
  box.source = {source, pointers.source, 0, 0};
  box.width = bytes;
  return SubmitCopy(box, stream, mode);
}

uint64_t Address(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }

CUresult FillRows(Fill fill, unsigned element_bytes, CUstream stream, CopyMode mode) {
  fill.element_bytes = element_bytes;
  return SubmitFill(fill, stream, mode);
}

}  // namespace

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t bytes) {
  return Copy(Memory::kDevice, Memory::kHost, {to, Address(from)}, bytes, nullptr, kSync);
}

CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t bytes) {
  return Copy(Memory::kHost, Memory::kDevice, {Address(to), from}, bytes, nullptr, kSync);
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return Copy(Memory::kDevice, Memory::kDevice, {to, from}, bytes, nullptr, kSync);
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  return Copy(Memory::kUnified, Memory::kUnified, {to, from}, bytes, nullptr, kSync);
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes) {
  return Copy(Memory::kDevice, Memory::kDevice, {to, from}, bytes, nullptr, kSync);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return Copy(Memory::kDevice, Memory::kHost, {to, Address(from)}, bytes, stream, kAsync);
}

CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return Copy(Memory::kHost, Memory::kDevice, {Address(to), from}, bytes, stream, kAsync);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return Copy(Memory::kDevice, Memory::kDevice, {to, from}, bytes, stream, kAsync);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return Copy(Memory::kUnified, Memory::kUnified, {to, from}, bytes, stream, kAsync);
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes,
                           CUstream stream) {
  return Copy(Memory::kDevice, Memory::kDevice, {to, from}, bytes, stream, kAsync);
}

// --- memsets

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count) {
  return FillRows({to, 0, count, 1, value}, 1, nullptr, kSync);
}

CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count) {
  return FillRows({to, 0, count, 1, value}, 2, nullptr, kSync);
}

CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count) {
  return FillRows({to, 0, count, 1, value}, 4, nullptr, kSync);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  return FillRows({to, 0, count, 1, value}, 1, stream, kAsync);
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream) {
  return FillRows({to, 0, count, 1, value}, 2, stream, kAsync);
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream) {
  return FillRows({to, 0, count, 1, value}, 4, stream, kAsync);
}

CUresult cuMemsetD2D8_v2(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                         size_t height) {
  return FillRows({to, pitch, width, height, value}, 1, nullptr, kSync);
}

CUresult cuMemsetD2D16_v2(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                          size_t height) {
  return FillRows({to, pitch, width, height, value}, 2, nullptr, kSync);
}

CUresult cuMemsetD2D32_v2(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                          size_t height) {
  return FillRows({to, pitch, width, height, value}, 4, nullptr, kSync);
}

CUresult cuMemsetD2D8Async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width,
                           size_t height, CUstream stream) {
  return FillRows({to, pitch, width, height, value}, 1, stream, kAsync);
}

CUresult cuMemsetD2D16Async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width,
                            size_t height, CUstream stream) {
  return FillRows({to, pitch, width, height, value}, 2, stream, kAsync);
}

CUresult cuMemsetD2D32Async(CUdeviceptr to, size_t pitch, unsigned int value, size_t width,
                            size_t height, CUstream stream) {
  return FillRows({to, pitch, width, height, value}, 4, stream, kAsync);
}

}  // namespace softgpu::api
