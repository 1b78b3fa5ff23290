// Arrays, and copies of boxes of them, for the programs that use arrays.
#pragma once

#include <vector>

#include "check.h"

using Bytes = std::vector<unsigned char>;

inline unsigned SumOf(const void* bytes, size_t count) {
  unsigned sum = 1;
  for (size_t i = 0; i < count; ++i) sum = sum * 31 + static_cast<const unsigned char*>(bytes)[i];
  return sum;
}

inline Bytes Pattern(size_t count, unsigned seed) {
  Bytes bytes(count);
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<unsigned char>(i * 7 + i / 251 + seed);
  return bytes;
}

inline CUarray Make(size_t width, size_t height, size_t depth, CUarray_format format,
                    unsigned channels, unsigned flags = 0) {
  const CUDA_ARRAY3D_DESCRIPTOR descriptor = {width, height, depth, format, channels, flags};
  CUarray array = nullptr;
  CHECK(cuArray3DCreate(&array, &descriptor));
  return array;
}

// A box of an array, and the memory at the copy's other end.
struct Box {
  CUarray array;
  size_t x, y, z, width, height, depth;
};

inline CUDA_MEMCPY3D Into(const Box& box, CUmemorytype type, const void* memory, size_t pitch,
                          size_t rows) {
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = type;
  copy.srcHost = memory;
  copy.srcDevice = reinterpret_cast<CUdeviceptr>(memory);
  copy.srcPitch = pitch;
  copy.srcHeight = rows;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = box.array;
  copy.dstXInBytes = box.x;
  copy.dstY = box.y;
  copy.dstZ = box.z;
  copy.WidthInBytes = box.width;
  copy.Height = box.height;
  copy.Depth = box.depth;
  return copy;
}

inline CUDA_MEMCPY3D OutOf(const Box& box, CUmemorytype type, void* memory, size_t pitch,
                           size_t rows) {
  CUDA_MEMCPY3D copy = {};
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.srcArray = box.array;
  copy.srcXInBytes = box.x;
  copy.srcY = box.y;
  copy.srcZ = box.z;
  copy.dstMemoryType = type;
  copy.dstHost = memory;
  copy.dstDevice = reinterpret_cast<CUdeviceptr>(memory);
  copy.dstPitch = pitch;
  copy.dstHeight = rows;
  copy.WidthInBytes = box.width;
  copy.Height = box.height;
  copy.Depth = box.depth;
  return copy;
}

inline void FillFrom(const Box& box, const void* host) {
  const CUDA_MEMCPY3D copy = Into(box, CU_MEMORYTYPE_HOST, host, box.width, box.height);
  CHECK(cuMemcpy3D(&copy));
}
