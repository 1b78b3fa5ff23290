// Arrays, and copies of boxes of memory, which the driver describes by CUDA_MEMCPY3D.
#include "runtime/array.h"

#include "runtime/api.h"
#include "runtime/context.h"
#include "runtime/copy.h"
#include "runtime/driver.h"

namespace runtime {
namespace {

CUarray Handle(cudaArray_const_t array) {
  return reinterpret_cast<CUarray>(const_cast<cudaArray_t>(array));
}

}  // namespace

// An array's element has the same bits in all its channels, so the sum is the element's size.
cudaError_t ElementBytes(cudaArray_const_t array, size_t* bytes) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor = {};
  const cudaError_t error = Driver().cuArray3DGetDescriptor_v2(&descriptor, Handle(array));
  if (error != cudaSuccess) return error;
  const cudaChannelFormatDesc format = ToFormat(descriptor.Format, descriptor.NumChannels);
  *bytes = static_cast<size_t>(format.x + format.y + format.z + format.w) / 8;
  return *bytes == 0 ? cudaErrorNotSupported : cudaSuccess;
}

namespace {

// One side of a copy; `x`, `pitch` and `height` in bytes and rows.
struct Side {
  CUmemorytype type;
  CUarray array;
  const void* pointer;
  size_t x, y, z, pitch, height;
};

// An x position counts elements of the array on its side, or bytes of the pointer.
cudaError_t ToSide(cudaArray_const_t array, const cudaPitchedPtr& pointer, const cudaPos& position,
                   CUmemorytype type, Side* side) {
  *side = {type,       Handle(array), pointer.ptr,   position.x,
           position.y, position.z,    pointer.pitch, pointer.ysize};
  if (array == nullptr) return pointer.ptr == nullptr ? cudaErrorInvalidValue : cudaSuccess;
  if (pointer.ptr != nullptr) return cudaErrorInvalidValue;
  size_t element = 0;
  const cudaError_t error = ElementBytes(array, &element);
  side->type = CU_MEMORYTYPE_ARRAY;
  side->x *= element;
  return error;
}

// CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER have these members alike. Both pointers are set: the memory
// types say which of the two the driver reads.
template <class Copy>
void SetSides(const Side& source, const Side& target, const cudaExtent& bytes, Copy* copy) {
  copy->srcMemoryType = source.type;
  copy->srcArray = source.array;
  copy->srcHost = source.pointer;
  copy->srcDevice = reinterpret_cast<CUdeviceptr>(source.pointer);
  copy->srcXInBytes = source.x;
  copy->srcY = source.y;
  copy->srcZ = source.z;
  copy->srcPitch = source.pitch;
  copy->srcHeight = source.height;
  copy->dstMemoryType = target.type;
  copy->dstArray = target.array;
  copy->dstHost = const_cast<void*>(target.pointer);
  copy->dstDevice = reinterpret_cast<CUdeviceptr>(target.pointer);
  copy->dstXInBytes = target.x;
  copy->dstY = target.y;
  copy->dstZ = target.z;
  copy->dstPitch = target.pitch;
  copy->dstHeight = target.height;
  copy->WidthInBytes = bytes.width;
  copy->Height = bytes.height;
  copy->Depth = bytes.depth;
}

// The extent's width counts elements when an array takes part, bytes otherwise.
cudaError_t ExtentInBytes(cudaArray_const_t source, cudaArray_const_t target, cudaExtent* extent) {
  if (source == nullptr && target == nullptr) return cudaSuccess;
  size_t element = 0;
  const cudaError_t error = ElementBytes(source != nullptr ? source : target, &element);
  extent->width *= element;
  return error;
}

// A copy between devices names contexts: the primary one of each device.
cudaError_t ToDriver(const cudaMemcpy3DPeerParms& params, CUDA_MEMCPY3D_PEER* copy) {
  Side source, target;
  cudaExtent extent = params.extent;
  *copy = {};
  cudaError_t error = PrimaryContext(params.srcDevice, &copy->srcContext);
  if (error == cudaSuccess) error = PrimaryContext(params.dstDevice, &copy->dstContext);
  if (error == cudaSuccess) {
    error = ToSide(params.srcArray, params.srcPtr, params.srcPos, CU_MEMORYTYPE_UNIFIED, &source);
  }
  if (error == cudaSuccess) {
    error = ToSide(params.dstArray, params.dstPtr, params.dstPos, CU_MEMORYTYPE_UNIFIED, &target);
  }
  if (error == cudaSuccess) error = ExtentInBytes(params.srcArray, params.dstArray, &extent);
  if (error == cudaSuccess) SetSides(source, target, extent, copy);
  return error;
}

}  // namespace

cudaError_t ToDriver(const cudaMemcpy3DParms& params, CUDA_MEMCPY3D* copy) {
  if (!IsCopyKind(params.kind)) return cudaErrorInvalidMemcpyDirection;
  Side source, target;
  cudaExtent extent = params.extent;
  cudaError_t error =
      ToSide(params.srcArray, params.srcPtr, params.srcPos, SourceType(params.kind), &source);
  if (error == cudaSuccess) {
    error = ToSide(params.dstArray, params.dstPtr, params.dstPos, TargetType(params.kind), &target);
  }
  if (error == cudaSuccess) error = ExtentInBytes(params.srcArray, params.dstArray, &extent);
  if (error != cudaSuccess) return error;
  *copy = {};
  SetSides(source, target, extent, copy);
  return cudaSuccess;
}

namespace {

// The kind under which a program would have asked for this copy, for getters of graph nodes.
cudaMemcpyKind KindOf(CUmemorytype source, CUmemorytype target) {
  if (source == CU_MEMORYTYPE_UNIFIED || target == CU_MEMORYTYPE_UNIFIED) return cudaMemcpyDefault;
  if (source == CU_MEMORYTYPE_HOST)
    return target == CU_MEMORYTYPE_HOST ? cudaMemcpyHostToHost : cudaMemcpyHostToDevice;
  return target == CU_MEMORYTYPE_HOST ? cudaMemcpyDeviceToHost : cudaMemcpyDeviceToDevice;
}

// The inverse of ToSide(). The driver keeps no width of the memory, so the width of the copy stands
// in for that.
cudaError_t FromSide(const Side& side, size_t width, cudaArray_t* array, cudaPitchedPtr* pointer,
                     cudaPos* position) {
  *position = {side.x, side.y, side.z};
  if (side.type != CU_MEMORYTYPE_ARRAY) {
    *pointer = {const_cast<void*>(side.pointer), side.pitch, width, side.height};
    return cudaSuccess;
  }
  *array = reinterpret_cast<cudaArray_t>(side.array);
  size_t element = 0;
  const cudaError_t error = ElementBytes(*array, &element);
  if (error == cudaSuccess) position->x /= element;
  return error;
}

const void* PointerOf(CUmemorytype type, const void* host, CUdeviceptr device) {
  return type == CU_MEMORYTYPE_HOST ? host : reinterpret_cast<const void*>(device);
}

}  // namespace

cudaError_t FromDriver(const CUDA_MEMCPY3D& copy, cudaMemcpy3DParms* params) {
  *params = {};
  const Side source = {copy.srcMemoryType,
                       copy.srcArray,
                       PointerOf(copy.srcMemoryType, copy.srcHost, copy.srcDevice),
                       copy.srcXInBytes,
                       copy.srcY,
                       copy.srcZ,
                       copy.srcPitch,
                       copy.srcHeight};
  const Side target = {copy.dstMemoryType,
                       copy.dstArray,
                       PointerOf(copy.dstMemoryType, copy.dstHost, copy.dstDevice),
                       copy.dstXInBytes,
                       copy.dstY,
                       copy.dstZ,
                       copy.dstPitch,
                       copy.dstHeight};
  const size_t width = copy.WidthInBytes;
  cudaError_t error = FromSide(source, width, &params->srcArray, &params->srcPtr, &params->srcPos);
  if (error == cudaSuccess)
    error = FromSide(target, width, &params->dstArray, &params->dstPtr, &params->dstPos);
  const cudaArray_t array = params->srcArray != nullptr ? params->srcArray : params->dstArray;
  size_t element = 1;
  if (error == cudaSuccess && array != nullptr) error = ElementBytes(array, &element);
  params->extent = {width / element, copy.Height, copy.Depth};
  params->kind = KindOf(copy.srcMemoryType, copy.dstMemoryType);
  return error;
}

// The driver says what an element is by the type and number of its channels; the runtime by the
// bits of each channel and their kind.
cudaError_t ToFormat(const cudaChannelFormatDesc& desc, CUarray_format* format,
                     unsigned* channels) {
  const int bits[] = {desc.x, desc.y, desc.z, desc.w};
  *channels = 0;
  for (const int channel : bits) {
    if (channel == 0) break;
    if (channel != desc.x) return cudaErrorInvalidChannelDescriptor;
    ++*channels;
  }
  const int width = desc.x;
  switch (desc.f) {
    case cudaChannelFormatKindUnsigned:
      *format = width == 8    ? CU_AD_FORMAT_UNSIGNED_INT8
                : width == 16 ? CU_AD_FORMAT_UNSIGNED_INT16
                              : CU_AD_FORMAT_UNSIGNED_INT32;
      break;
    case cudaChannelFormatKindSigned:
      *format = width == 8    ? CU_AD_FORMAT_SIGNED_INT8
                : width == 16 ? CU_AD_FORMAT_SIGNED_INT16
                              : CU_AD_FORMAT_SIGNED_INT32;
      break;
    case cudaChannelFormatKindFloat:
      if (width == 8) return cudaErrorInvalidChannelDescriptor;
      *format = width == 16 ? CU_AD_FORMAT_HALF : CU_AD_FORMAT_FLOAT;
      break;
    default:
      return cudaErrorNotSupported;
  }
  const bool known = width == 8 || width == 16 || width == 32;
  return known && *channels != 0 && *channels != 3 ? cudaSuccess
                                                   : cudaErrorInvalidChannelDescriptor;
}

// The inverse. An unknown format becomes cudaChannelFormatKindNone with 0 bits.
cudaChannelFormatDesc ToFormat(CUarray_format format, unsigned channels) {
  int bits = 0;
  cudaChannelFormatKind kind = cudaChannelFormatKindNone;
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
      bits = 8, kind = cudaChannelFormatKindUnsigned;
      break;
    case CU_AD_FORMAT_UNSIGNED_INT16:
      bits = 16, kind = cudaChannelFormatKindUnsigned;
      break;
    case CU_AD_FORMAT_UNSIGNED_INT32:
      bits = 32, kind = cudaChannelFormatKindUnsigned;
      break;
    case CU_AD_FORMAT_SIGNED_INT8:
      bits = 8, kind = cudaChannelFormatKindSigned;
      break;
    case CU_AD_FORMAT_SIGNED_INT16:
      bits = 16, kind = cudaChannelFormatKindSigned;
      break;
    case CU_AD_FORMAT_SIGNED_INT32:
      bits = 32, kind = cudaChannelFormatKindSigned;
      break;
    case CU_AD_FORMAT_HALF:
      bits = 16, kind = cudaChannelFormatKindFloat;
      break;
    case CU_AD_FORMAT_FLOAT:
      bits = 32, kind = cudaChannelFormatKindFloat;
      break;
    default:
      break;
  }
  return {bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0, channels > 3 ? bits : 0, kind};
}

namespace {

// Dimensions of an array are counted in elements in both interfaces.
cudaError_t Describe(const cudaChannelFormatDesc* format, cudaExtent extent, unsigned flags,
                     CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
  if (format == nullptr) return cudaErrorInvalidValue;
  *descriptor = {};
  descriptor->Width = extent.width;
  descriptor->Height = extent.height;
  descriptor->Depth = extent.depth;
  descriptor->Flags = flags;
  return ToFormat(*format, &descriptor->Format, &descriptor->NumChannels);
}

}  // namespace

namespace api {

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                            cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}

cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* format, size_t width,
                            size_t height, unsigned flags) {
  return api::cudaMalloc3DArray(array, format, {width, height, 0}, flags);
}

cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* format,
                              cudaExtent extent, unsigned flags) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor;
  const cudaError_t error = Describe(format, extent, flags, &descriptor);
  if (error != cudaSuccess) return error;
  return Driver().cuArray3DCreate_v2(reinterpret_cast<CUarray*>(array), &descriptor);
}

cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t* array,
                                     const cudaChannelFormatDesc* format, cudaExtent extent,
                                     unsigned levels, unsigned flags) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor;
  const cudaError_t error = Describe(format, extent, flags, &descriptor);
  if (error != cudaSuccess) return error;
  return Driver().cuMipmappedArrayCreate(reinterpret_cast<CUmipmappedArray*>(array), &descriptor,
                                         levels);
}

// Freeing null succeeds, as free() does.
cudaError_t cudaFreeArray(cudaArray_t array) {
  return array == nullptr ? cudaSuccess : Driver().cuArrayDestroy(Handle(array));
}

cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* format, cudaExtent* extent, unsigned* flags,
                             cudaArray_t array) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor = {};
  const cudaError_t error = Driver().cuArray3DGetDescriptor_v2(&descriptor, Handle(array));
  if (error != cudaSuccess) return error;
  if (format != nullptr) *format = ToFormat(descriptor.Format, descriptor.NumChannels);
  if (extent != nullptr) *extent = {descriptor.Width, descriptor.Height, descriptor.Depth};
  if (flags != nullptr) *flags = descriptor.Flags;
  return cudaSuccess;
}

cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* format, cudaArray_const_t array) {
  if (format == nullptr) return cudaErrorInvalidValue;
  return api::cudaArrayGetInfo(format, nullptr, nullptr, const_cast<cudaArray_t>(array));
}

cudaError_t cudaDeviceGetTexture1DLinearMaxWidth(size_t* elements,
                                                 const cudaChannelFormatDesc* format, int device) {
  if (format == nullptr) return cudaErrorInvalidValue;
  CUarray_format driver_format;
  unsigned channels = 0;
  const cudaError_t error = ToFormat(*format, &driver_format, &channels);
  if (error != cudaSuccess) return error;
  return Driver().cuDeviceGetTexture1DLinearMaxWidth(elements, driver_format, channels, device);
}

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* params) {
  if (params == nullptr) return cudaErrorInvalidValue;
  CUDA_MEMCPY3D copy;
  const cudaError_t error = ToDriver(*params, &copy);
  return error == cudaSuccess ? Driver().cuMemcpy3D_v2(&copy) : error;
}

cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* params, cudaStream_t stream) {
  if (params == nullptr) return cudaErrorInvalidValue;
  CUDA_MEMCPY3D copy;
  const cudaError_t error = ToDriver(*params, &copy);
  return error == cudaSuccess ? Driver().cuMemcpy3DAsync_v2(&copy, stream) : error;
}

cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms* params) {
  if (params == nullptr) return cudaErrorInvalidValue;
  CUDA_MEMCPY3D_PEER copy;
  const cudaError_t error = ToDriver(*params, &copy);
  return error == cudaSuccess ? Driver().cuMemcpy3DPeer(&copy) : error;
}

cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* params, cudaStream_t stream) {
  if (params == nullptr) return cudaErrorInvalidValue;
  CUDA_MEMCPY3D_PEER copy;
  const cudaError_t error = ToDriver(*params, &copy);
  return error == cudaSuccess ? Driver().cuMemcpy3DPeerAsync(&copy, stream) : error;
}

}  // namespace api
}  // namespace runtime
