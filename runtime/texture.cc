// Texture and surface objects: the runtime's description of a resource in the driver's terms.
#include <algorithm>
#include <type_traits>

#include "runtime/api.h"
#include "runtime/array.h"
#include "runtime/driver.h"

namespace runtime {
namespace {

cudaError_t ToResource(const cudaResourceDesc& from, CUDA_RESOURCE_DESC* to) {
  *to = {};
  to->flags = from.flags;
  switch (from.resType) {
    case cudaResourceTypeArray:
      to->resType = CU_RESOURCE_TYPE_ARRAY;
      to->res.array.hArray = reinterpret_cast<CUarray>(from.res.array.array);
      return cudaSuccess;
    case cudaResourceTypeMipmappedArray:
      to->resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
      to->res.mipmap.hMipmappedArray = reinterpret_cast<CUmipmappedArray>(from.res.mipmap.mipmap);
      return cudaSuccess;
    case cudaResourceTypeLinear:
      to->resType = CU_RESOURCE_TYPE_LINEAR;
      to->res.linear.devPtr = reinterpret_cast<CUdeviceptr>(from.res.linear.devPtr);
      to->res.linear.sizeInBytes = from.res.linear.sizeInBytes;
      return ToFormat(from.res.linear.desc, &to->res.linear.format, &to->res.linear.numChannels);
    case cudaResourceTypePitch2D:
      to->resType = CU_RESOURCE_TYPE_PITCH2D;
      to->res.pitch2D.devPtr = reinterpret_cast<CUdeviceptr>(from.res.pitch2D.devPtr);
      to->res.pitch2D.width = from.res.pitch2D.width;
      to->res.pitch2D.height = from.res.pitch2D.height;
      to->res.pitch2D.pitchInBytes = from.res.pitch2D.pitchInBytes;
      return ToFormat(from.res.pitch2D.desc, &to->res.pitch2D.format, &to->res.pitch2D.numChannels);
    default:
      return cudaErrorInvalidValue;
  }
}

// One of the descriptions from the other's, less what they say differently: flags.
template <class To, class From>
To Sampling(const From& from) {
  To to = {};
  for (int i = 0; i < 3; ++i) {
    to.addressMode[i] = static_cast<std::decay_t<decltype(to.addressMode[i])>>(from.addressMode[i]);
  }
  to.filterMode = static_cast<decltype(to.filterMode)>(from.filterMode);
  to.maxAnisotropy = from.maxAnisotropy;
  to.mipmapFilterMode = static_cast<decltype(to.mipmapFilterMode)>(from.mipmapFilterMode);
  to.mipmapLevelBias = from.mipmapLevelBias;
  to.minMipmapLevelClamp = from.minMipmapLevelClamp;
  to.maxMipmapLevelClamp = from.maxMipmapLevelClamp;
  std::copy_n(from.borderColor, 4, to.borderColor);
  return to;
}

CUDA_TEXTURE_DESC ToTexture(const cudaTextureDesc& from) {
  CUDA_TEXTURE_DESC to = Sampling<CUDA_TEXTURE_DESC>(from);
  to.flags = (from.readMode == cudaReadModeElementType ? CU_TRSF_READ_AS_INTEGER : 0) |
             (from.normalizedCoords ? CU_TRSF_NORMALIZED_COORDINATES : 0) |
             (from.sRGB ? CU_TRSF_SRGB : 0) |
             (from.disableTrilinearOptimization ? CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION : 0) |
             (from.seamlessCubemap ? CU_TRSF_SEAMLESS_CUBEMAP : 0);
  return to;
}

// One of the descriptions from the other's, which has the same fields.
template <class To, class From>
To View(const From& from) {
  To to = {};
  to.format = static_cast<decltype(to.format)>(from.format);
  to.width = from.width;
  to.height = from.height;
  to.depth = from.depth;
  to.firstMipmapLevel = from.firstMipmapLevel;
  to.lastMipmapLevel = from.lastMipmapLevel;
  to.firstLayer = from.firstLayer;
  to.lastLayer = from.lastLayer;
  return to;
}

cudaError_t FromResource(const CUDA_RESOURCE_DESC& from, cudaResourceDesc* to) {
  *to = {};
  to->flags = from.flags;
  switch (from.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      to->resType = cudaResourceTypeArray;
      to->res.array.array = reinterpret_cast<cudaArray_t>(from.res.array.hArray);
      return cudaSuccess;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      to->resType = cudaResourceTypeMipmappedArray;
      to->res.mipmap.mipmap =
          reinterpret_cast<cudaMipmappedArray_t>(from.res.mipmap.hMipmappedArray);
      return cudaSuccess;
    case CU_RESOURCE_TYPE_LINEAR:
      to->resType = cudaResourceTypeLinear;
      to->res.linear = {reinterpret_cast<void*>(from.res.linear.devPtr),
                        ToFormat(from.res.linear.format, from.res.linear.numChannels),
                        from.res.linear.sizeInBytes};
      return cudaSuccess;
    case CU_RESOURCE_TYPE_PITCH2D:
      to->resType = cudaResourceTypePitch2D;
      to->res.pitch2D = {reinterpret_cast<void*>(from.res.pitch2D.devPtr),
                         ToFormat(from.res.pitch2D.format, from.res.pitch2D.numChannels),
                         from.res.pitch2D.width, from.res.pitch2D.height,
                         from.res.pitch2D.pitchInBytes};
      return cudaSuccess;
    default:
      return cudaErrorNotSupported;
  }
}

cudaTextureDesc FromTexture(const CUDA_TEXTURE_DESC& from) {
  cudaTextureDesc to = Sampling<cudaTextureDesc>(from);
  to.readMode = (from.flags & CU_TRSF_READ_AS_INTEGER) != 0 ? cudaReadModeElementType
                                                            : cudaReadModeNormalizedFloat;
  to.normalizedCoords = (from.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
  to.sRGB = (from.flags & CU_TRSF_SRGB) != 0;
  to.disableTrilinearOptimization = (from.flags & CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION) != 0;
  to.seamlessCubemap = (from.flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0;
  return to;
}

}  // namespace

namespace api {

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* texture, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* description,
                                    const cudaResourceViewDesc* view) {
  if (resource == nullptr || description == nullptr) return cudaErrorInvalidValue;
  CUDA_RESOURCE_DESC driver_resource;
  const cudaError_t error = ToResource(*resource, &driver_resource);
  if (error != cudaSuccess) return error;
  const CUDA_TEXTURE_DESC driver_texture = ToTexture(*description);
  if (view == nullptr) {
    return Driver().cuTexObjectCreate(texture, &driver_resource, &driver_texture, nullptr);
  }
  const CUDA_RESOURCE_VIEW_DESC driver_view = View<CUDA_RESOURCE_VIEW_DESC>(*view);
  return Driver().cuTexObjectCreate(texture, &driver_resource, &driver_texture, &driver_view);
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* surface,
                                    const cudaResourceDesc* resource) {
  if (resource == nullptr) return cudaErrorInvalidValue;
  CUDA_RESOURCE_DESC driver_resource;
  const cudaError_t error = ToResource(*resource, &driver_resource);
  return error == cudaSuccess ? Driver().cuSurfObjectCreate(surface, &driver_resource) : error;
}

cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* resource,
                                             cudaTextureObject_t texture) {
  if (resource == nullptr) return cudaErrorInvalidValue;
  CUDA_RESOURCE_DESC found;
  const cudaError_t error = Driver().cuTexObjectGetResourceDesc(&found, texture);
  return error == cudaSuccess ? FromResource(found, resource) : error;
}

cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc* resource,
                                             cudaSurfaceObject_t surface) {
  if (resource == nullptr) return cudaErrorInvalidValue;
  CUDA_RESOURCE_DESC found;
  const cudaError_t error = Driver().cuSurfObjectGetResourceDesc(&found, surface);
  return error == cudaSuccess ? FromResource(found, resource) : error;
}

cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc* description,
                                            cudaTextureObject_t texture) {
  if (description == nullptr) return cudaErrorInvalidValue;
  CUDA_TEXTURE_DESC found;
  const cudaError_t error = Driver().cuTexObjectGetTextureDesc(&found, texture);
  if (error == cudaSuccess) *description = FromTexture(found);
  return error;
}

cudaError_t cudaGetTextureObjectResourceViewDesc(cudaResourceViewDesc* view,
                                                 cudaTextureObject_t texture) {
  if (view == nullptr) return cudaErrorInvalidValue;
  CUDA_RESOURCE_VIEW_DESC found;
  const cudaError_t error = Driver().cuTexObjectGetResourceViewDesc(&found, texture);
  if (error == cudaSuccess) *view = View<cudaResourceViewDesc>(found);
  return error;
}

}  // namespace api
}  // namespace runtime
