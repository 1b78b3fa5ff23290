// Boxes from and to the parameters of cuMemcpy3D.
#include "softgpu/driver/copy.h"
#include "softgpu/driver/error_log.h"

namespace softgpu {
namespace {

struct Side {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  size_t x, y, z, pitch, height;
};

// A pitch of 0 stands for packed rows, a height of 0 for planes as high as the copy.
bool Resolve(const Side& side, const CopyBox& box, CopySide* out) {
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
  out->pitch = side.pitch != 0 ? side.pitch : box.width;
  out->slice = out->pitch * (side.height != 0 ? side.height : box.height);
  out->address += side.z * out->slice + side.y * out->pitch + side.x;
  return true;
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
  const Side destination = {params.dstMemoryType, params.dstHost,  params.dstDevice,
                            params.dstXInBytes,   params.dstY,     params.dstZ,
                            params.dstPitch,      params.dstHeight};
  const Side source = {params.srcMemoryType, params.srcHost, params.srcDevice, params.srcXInBytes,
                       params.srcY,          params.srcZ,    params.srcPitch,  params.srcHeight};
  if (Resolve(destination, *box, &box->destination) && Resolve(source, *box, &box->source)) {
    return CUDA_SUCCESS;
  }
  return Fail(CUDA_ERROR_NOT_SUPPORTED, "copies from and to arrays are not supported");
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
