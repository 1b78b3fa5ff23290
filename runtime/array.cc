// Arrays, and every copy that may involve one: boxes of memory that the driver describes by
// CUDA_MEMCPY3D.
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

// Bytes of an element of the array: what turns the runtime's x positions into bytes.
cudaError_t ElementBytes(cudaArray_const_t array, size_t* bytes) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor = {};
  const cudaError_t error = Driver().cuArray3DGetDescriptor_v2(&descriptor, Handle(array));
  if (error != cudaSuccess) return error;
  const cudaChannelFormatDesc format = ToFormat(descriptor.Format, descriptor.NumChannels);
  *bytes = static_cast<size_t>(format.x + format.y + format.z + format.w) / 8;
  return *bytes == 0 ? cudaErrorNotSupported : cudaSuccess;
}

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

// The plane copies of arrays count x and width in bytes already.
cudaMemcpy3DParms Plane(size_t width, size_t height, cudaMemcpyKind kind) {
  cudaMemcpy3DParms params = {};
  params.extent = {width, height, 1};
  params.kind = kind;
  return params;
}

cudaError_t ArrayPosition(cudaArray_const_t array, size_t x_bytes, size_t y, cudaPos* position,
                          size_t* element) {
  const cudaError_t error = ElementBytes(array, element);
  if (error != cudaSuccess) return error;
  if (x_bytes % *element != 0) return cudaErrorInvalidValue;
  *position = {x_bytes / *element, y, 0};
  return cudaSuccess;
}

struct Linear {
  void* pointer;
  size_t pitch;
};

// A copy between a plane of an array and linear memory; `to_array` says which way.
cudaError_t PlaneCopy(cudaArray_const_t array, size_t x_bytes, size_t y, const Linear& linear,
                      cudaMemcpy3DParms params, bool to_array, cudaStream_t stream) {
  cudaPos position;
  size_t element = 0;
  const cudaError_t error = ArrayPosition(array, x_bytes, y, &position, &element);
  if (error != cudaSuccess) return error;
  if (params.extent.width % element != 0) return cudaErrorInvalidValue;
  const cudaPitchedPtr pitched = {linear.pointer, linear.pitch, params.extent.width,
                                  params.extent.height};
  params.extent.width /= element;
  (to_array ? params.dstArray : params.srcArray) = const_cast<cudaArray_t>(array);
  (to_array ? params.dstPos : params.srcPos) = position;
  (to_array ? params.srcPtr : params.dstPtr) = pitched;
  return api::cudaMemcpy3DAsync(&params, stream);
}

cudaError_t ThenWait(cudaError_t error) {
  return error == cudaSuccess ? Driver().cuStreamSynchronize(cudaStreamLegacy) : error;
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

cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t target, size_t x, size_t y, const void* source,
                                     size_t pitch, size_t width, size_t height, cudaMemcpyKind kind,
                                     cudaStream_t stream) {
  return PlaneCopy(target, x, y, {const_cast<void*>(source), pitch}, Plane(width, height, kind),
                   true, stream);
}

cudaError_t cudaMemcpy2DFromArrayAsync(void* target, size_t pitch, cudaArray_const_t source,
                                       size_t x, size_t y, size_t width, size_t height,
                                       cudaMemcpyKind kind, cudaStream_t stream) {
  return PlaneCopy(source, x, y, {target, pitch}, Plane(width, height, kind), false, stream);
}

cudaError_t cudaMemcpy2DToArray(cudaArray_t target, size_t x, size_t y, const void* source,
                                size_t pitch, size_t width, size_t height, cudaMemcpyKind kind) {
  return ThenWait(api::cudaMemcpy2DToArrayAsync(target, x, y, source, pitch, width, height, kind,
                                                cudaStreamLegacy));
}

cudaError_t cudaMemcpy2DFromArray(void* target, size_t pitch, cudaArray_const_t source, size_t x,
                                  size_t y, size_t width, size_t height, cudaMemcpyKind kind) {
  return ThenWait(api::cudaMemcpy2DFromArrayAsync(target, pitch, source, x, y, width, height, kind,
                                                  cudaStreamLegacy));
}

}  // namespace api
}  // namespace runtime
