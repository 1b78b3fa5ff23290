// Texture and surface objects.
#include <algorithm>
#include <iterator>
#include <memory>

#include "ipc/calls/limits.h"
#include "softgpu/driver/api.h"
#include "softgpu/driver/array.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/handles.h"
#include "softgpu/driver/memory_map.h"

namespace softgpu::api {
namespace {

namespace limits = ipc::limits;

uint64_t HandleOf(const void* object) { return reinterpret_cast<uint64_t>(object); }

// The format and the channels that a view gives to texels; no channels: a compressed one.
struct ViewFormat {
  CUarray_format format;
  unsigned channels;
};

// The enumeration goes on with block-compressed formats.
ViewFormat FormatOf(CUresourceViewFormat view) {
  // In the order of the enumeration, each with 1, 2 and 4 channels.
  constexpr CUarray_format kFormats[] = {CU_AD_FORMAT_UNSIGNED_INT8,  CU_AD_FORMAT_SIGNED_INT8,
                                         CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_SIGNED_INT16,
                                         CU_AD_FORMAT_UNSIGNED_INT32, CU_AD_FORMAT_SIGNED_INT32,
                                         CU_AD_FORMAT_HALF,           CU_AD_FORMAT_FLOAT};
  const unsigned number = static_cast<unsigned>(view) - CU_RES_VIEW_FORMAT_UINT_1X8;
  if (number / 3 >= std::size(kFormats)) return {CU_AD_FORMAT_UNSIGNED_INT8, 0};
  return {kFormats[number / 3], 1u << number % 3};
}

// A view reads texels of an array in another format of the same size, and some of its layers.
CUresult UseView(const CUDA_RESOURCE_VIEW_DESC& view, TextureObject* object) {
  if (view.format == CU_RES_VIEW_FORMAT_NONE) return CUDA_SUCCESS;
  if (object->array == nullptr)
    return Fail(CUDA_ERROR_INVALID_VALUE, "a view is of an array, not of linear memory");
  const ViewFormat as = FormatOf(view.format);
  if (as.channels == 0)
    return Fail(CUDA_ERROR_NOT_SUPPORTED, "views of block-compressed formats are not supported");
  Texels* const texels = &object->texture.texels;
  const bool layered = (object->array->descriptor().Flags & CUDA_ARRAY3D_LAYERED) != 0;
  const unsigned layers = layered ? texels->depth : 1;
  if (BytesOfFormat(as.format) * as.channels != texels->texel_bytes() ||
      view.width != texels->width || std::max<size_t>(view.height, 1) != texels->height ||
      view.firstLayer > view.lastLayer || view.lastLayer >= layers) {
    return Fail(CUDA_ERROR_INVALID_VALUE, "the view does not fit its array");
  }
  texels->format = as.format;
  texels->channels = as.channels;
  if (layered) {
    texels->base += view.firstLayer * texels->slice;
    texels->depth = view.lastLayer - view.firstLayer + 1;
  }
  return CUDA_SUCCESS;
}

// A kernel reads the texels without a look at the map, so all of them must be memory now.
CUresult LinearTexels(CUdeviceptr at, CUarray_format format, unsigned channels, uint64_t span,
                      Texels* texels) {
  texels->base = reinterpret_cast<std::byte*>(at);
  texels->format = format;
  texels->channels = channels;
  if (texels->texel_bytes() == 0 || channels > 4 || channels == 3)
    return Fail(CUDA_ERROR_INVALID_VALUE, "the device has no texels of this format");
  if (span == 0 || !Driver::Get().memory_map().Covers(at, span))
    return Fail(CUDA_ERROR_INVALID_VALUE, "the texture's range is not allocated memory");
  return CUDA_SUCCESS;
}

// Of a mipmapped array the first level is what textures read.
CUresult FindArray(const CUDA_RESOURCE_DESC& resource, std::shared_ptr<Array>* array) {
  if (resource.resType == CU_RESOURCE_TYPE_ARRAY) {
    *array = Driver::Get().arrays.Find(resource.res.array.hArray);
  } else {
    const std::shared_ptr<MipmappedArray> levels =
        Driver::Get().mipmapped_arrays.Find(resource.res.mipmap.hMipmappedArray);
    if (levels != nullptr) *array = levels->levels().front();
  }
  return *array != nullptr ? CUDA_SUCCESS : Fail(CUDA_ERROR_INVALID_HANDLE, "this is no array");
}

// An array brings its own shape. The program describes the shape of a range of memory: one row, or
// several rows a pitch apart. The last row may end before its pitch does, as no texel of the device
// lies there.
CUresult FindTexels(TextureObject* object) {
  const CUDA_RESOURCE_DESC& resource = object->resource;
  Texels* const texels = &object->texture.texels;
  switch (resource.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY: {
      const CUresult result = FindArray(resource, &object->array);
      if (result == CUDA_SUCCESS) *texels = object->array->texels();
      return result;
    }
    case CU_RESOURCE_TYPE_LINEAR: {
      const auto& linear = resource.res.linear;
      const CUresult result = LinearTexels(linear.devPtr, linear.format, linear.numChannels,
                                           linear.sizeInBytes, texels);
      if (result != CUDA_SUCCESS) return result;
      const uint64_t width = linear.sizeInBytes / texels->texel_bytes();
      texels->width = static_cast<uint32_t>(width);
      return width <= limits::kLinearTexelsMax
                 ? CUDA_SUCCESS
                 : Fail(CUDA_ERROR_INVALID_VALUE, "the device has no textures of this length");
    }
    case CU_RESOURCE_TYPE_PITCH2D: {
      const auto& pitched = resource.res.pitch2D;
      const uint64_t row =
          pitched.width * BytesOfFormat(pitched.format) * uint64_t{pitched.numChannels};
      // A length that wraps would pass for a short one.
      uint64_t rows = 0;
      if (pitched.width == 0 || pitched.width > limits::kArraySideMax || pitched.height == 0 ||
          pitched.height > limits::kArraySideMax || pitched.numChannels > 4 ||
          (pitched.height > 1 && pitched.pitchInBytes < row) ||
          __builtin_mul_overflow(pitched.height - 1, pitched.pitchInBytes, &rows) ||
          rows > UINT64_MAX - row) {
        return Fail(CUDA_ERROR_INVALID_VALUE, "the device has no textures of these sizes");
      }
      texels->width = static_cast<uint32_t>(pitched.width);
      texels->height = static_cast<uint32_t>(pitched.height);
      texels->pitch = pitched.pitchInBytes;
      return LinearTexels(pitched.devPtr, pitched.format, pitched.numChannels, rows + row, texels);
    }
    default:
      return CUDA_ERROR_INVALID_VALUE;
  }
}

}  // namespace

CUresult cuTexObjectCreate(CUtexObject* out, const CUDA_RESOURCE_DESC* resource,
                           const CUDA_TEXTURE_DESC* description,
                           const CUDA_RESOURCE_VIEW_DESC* view) {
  if (out == nullptr || resource == nullptr || description == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  const std::shared_ptr<TextureObject> object = std::make_shared<TextureObject>();
  object->resource = *resource;
  object->description = *description;
  // Kept as the program gave it, for the getters.
  object->has_view = view != nullptr;
  if (view != nullptr) object->view = *view;
  Texture* const texture = &object->texture;
  // Out of range reads 0 in linear memory, whatever the modes say.
  const bool linear_memory = resource->resType == CU_RESOURCE_TYPE_LINEAR;
  for (int k = 0; k < 3; ++k) {
    texture->address[k] = linear_memory ? CU_TR_ADDRESS_MODE_BORDER : description->addressMode[k];
  }
  texture->linear = description->filterMode == CU_TR_FILTER_MODE_LINEAR && !linear_memory;
  texture->as_integer = (description->flags & CU_TRSF_READ_AS_INTEGER) != 0;
  texture->normalized =
      (description->flags & CU_TRSF_NORMALIZED_COORDINATES) != 0 && !linear_memory;
  texture->srgb = (description->flags & CU_TRSF_SRGB) != 0;
  if (!linear_memory) std::copy_n(description->borderColor, 4, texture->border.begin());
  if (const CUresult result = FindTexels(object.get()); result != CUDA_SUCCESS) return result;
  if (view != nullptr) {
    if (const CUresult result = UseView(*view, object.get()); result != CUDA_SUCCESS) return result;
  }
  *out = HandleOf(Driver::Get().textures.Add(object));
  return CUDA_SUCCESS;
}

CUresult cuTexObjectDestroy(CUtexObject handle) {
  return Driver::Get().textures.Remove(reinterpret_cast<const void*>(handle)) != nullptr
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUtexObject handle) {
  const std::shared_ptr<TextureObject> object =
      Driver::Get().textures.Find(reinterpret_cast<const void*>(handle));
  if (object == nullptr || resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *resource = object->resource;
  return CUDA_SUCCESS;
}

CUresult cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC* description, CUtexObject handle) {
  const std::shared_ptr<TextureObject> object =
      Driver::Get().textures.Find(reinterpret_cast<const void*>(handle));
  if (object == nullptr || description == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *description = object->description;
  return CUDA_SUCCESS;
}

CUresult cuTexObjectGetResourceViewDesc(CUDA_RESOURCE_VIEW_DESC* view, CUtexObject handle) {
  const std::shared_ptr<TextureObject> object =
      Driver::Get().textures.Find(reinterpret_cast<const void*>(handle));
  if (object == nullptr || view == nullptr || !object->has_view) return CUDA_ERROR_INVALID_VALUE;
  *view = object->view;
  return CUDA_SUCCESS;
}

// Of arrays alone, and of those that were made for it.
CUresult cuSurfObjectCreate(CUsurfObject* out, const CUDA_RESOURCE_DESC* resource) {
  if (out == nullptr || resource == nullptr || resource->resType != CU_RESOURCE_TYPE_ARRAY)
    return CUDA_ERROR_INVALID_VALUE;
  const std::shared_ptr<SurfaceObject> object = std::make_shared<SurfaceObject>();
  object->resource = *resource;
  const CUresult result = FindArray(*resource, &object->array);
  if (result != CUDA_SUCCESS) return result;
  if ((object->array->descriptor().Flags & CUDA_ARRAY3D_SURFACE_LDST) == 0)
    return Fail(CUDA_ERROR_INVALID_VALUE, "the array was not created for surfaces");
  *out = HandleOf(Driver::Get().surfaces.Add(object));
  return CUDA_SUCCESS;
}

CUresult cuSurfObjectDestroy(CUsurfObject handle) {
  return Driver::Get().surfaces.Remove(reinterpret_cast<const void*>(handle)) != nullptr
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC* resource, CUsurfObject handle) {
  const std::shared_ptr<SurfaceObject> object =
      Driver::Get().surfaces.Find(reinterpret_cast<const void*>(handle));
  if (object == nullptr || resource == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *resource = object->resource;
  return CUDA_SUCCESS;
}

}  // namespace softgpu::api
