// Boxes from and to the parameters of cuMemcpy3D.
#include <algorithm>
#include <memory>

#include "softgpu/driver/array.h"
#include "softgpu/driver/copy.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"

namespace softgpu {
namespace {

struct Side {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  CUarray array;
  size_t x, y, z, pitch, height;
};

bool Within(uint64_t begin, uint64_t length, uint64_t end) {
  return begin <= end && length <= end - begin;
}

CUresult ResolveArray(const Side& side, const CopyBox& box, CopySide* out) {
  const std::shared_ptr<Array> array = Driver::Get().arrays.Find(side.array);
  if (array == nullptr) return Fail(CUDA_ERROR_INVALID_HANDLE, "this is no array");
  const Texels& texels = array->texels();
  const uint64_t row = uint64_t{texels.width} * texels.texel_bytes();
  if (side.x % texels.texel_bytes() != 0)
    return Fail(CUDA_ERROR_INVALID_VALUE, "x is no multiple of the array's elements");
  if (!Within(side.x, box.width, row) || !Within(side.y, box.height, texels.height) ||
      !Within(side.z, box.depth, texels.depth)) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "the copy goes beyond the array");
  }
  out->memory = CopySide::Memory::kDevice;
  out->pitch = texels.pitch;
  out->slice = texels.slice;
  out->address = array->address() + side.z * texels.slice + side.y * texels.pitch + side.x;
  return CUDA_SUCCESS;
}

// A pitch of 0 stands for packed rows, a height of 0 for planes as high as the copy.
CUresult Resolve(const Side& side, const CopyBox& box, CopySide* out) {
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
    case CU_MEMORYTYPE_ARRAY:
      return ResolveArray(side, box, out);
    default:
      return Fail(CUDA_ERROR_INVALID_VALUE, "a side of the copy has no memory type");
  }
  out->pitch = side.pitch != 0 ? side.pitch : box.width;
  out->slice = out->pitch * (side.height != 0 ? side.height : box.height);
  out->address += side.z * out->slice + side.y * out->pitch + side.x;
  return CUDA_SUCCESS;
}

CUmemorytype TypeOf(CopySide::Memory memory) {
  if (memory == CopySide::Memory::kHost) return CU_MEMORYTYPE_HOST;
  return memory == CopySide::Memory::kDevice ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_UNIFIED;
}

}  // namespace

CUresult BoxOf(const CUDA_MEMCPY3D& params, CopyBox* box) {
  box->width = params.WidthInBytes;
  box->height = params.Height;
  box->depth = params.Depth;
  const Side destination = {params.dstMemoryType, params.dstHost,     params.dstDevice,
                            params.dstArray,      params.dstXInBytes, params.dstY,
                            params.dstZ,          params.dstPitch,    params.dstHeight};
  const Side source = {params.srcMemoryType, params.srcHost,     params.srcDevice,
                       params.srcArray,      params.srcXInBytes, params.srcY,
                       params.srcZ,          params.srcPitch,    params.srcHeight};
  const CUresult result = Resolve(destination, *box, &box->destination);
  return result == CUDA_SUCCESS ? Resolve(source, *box, &box->source) : result;
}

CUDA_MEMCPY3D ParamsOf(const CopyBox& box) {
  CUDA_MEMCPY3D params = {};
  params.dstMemoryType = TypeOf(box.destination.memory);
  params.dstDevice = box.destination.address;
  params.dstHost = reinterpret_cast<void*>(box.destination.address);
  params.dstPitch = box.destination.pitch;
  params.srcMemoryType = TypeOf(box.source.memory);
  params.srcDevice = box.source.address;
  params.srcHost = reinterpret_cast<const void*>(box.source.address);
  params.srcPitch = box.source.pitch;
  if (box.destination.pitch != 0) params.dstHeight = box.destination.slice / box.destination.pitch;
  if (box.source.pitch != 0) params.srcHeight = box.source.slice / box.source.pitch;
  params.WidthInBytes = box.width;
  params.Height = box.height;
  params.Depth = box.depth;
  return params;
}

}  // namespace softgpu
