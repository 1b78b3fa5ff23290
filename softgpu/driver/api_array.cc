// Arrays and mipmapped arrays.
#include <memory>

#include "softgpu/driver/api.h"
#include "softgpu/driver/array.h"
#include "softgpu/driver/context.h"
#include "softgpu/driver/driver.h"
#include "softgpu/driver/error_log.h"
#include "softgpu/driver/handles.h"

namespace softgpu::api {
namespace {

CUresult FindArray(CUarray handle, std::shared_ptr<Array>* array) {
  *array = Driver::Get().arrays.Find(handle);
  return *array != nullptr ? CUDA_SUCCESS : Fail(CUDA_ERROR_INVALID_HANDLE, "this is no array");
}

CUDA_ARRAY_DESCRIPTOR Flat(const CUDA_ARRAY3D_DESCRIPTOR& d) {
  return {d.Width, d.Height, d.Format, d.NumChannels};
}

// Work in flight may still read it.
void WaitForAll() {
  for (const std::shared_ptr<Context>& context : Driver::Get().contexts.All())
    context->Synchronize();
}

CUresult Requirements(uint64_t bytes, CUDA_ARRAY_MEMORY_REQUIREMENTS* requirements) {
  if (requirements == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *requirements = {};
  requirements->size = bytes;
  requirements->alignment = 512;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuArray3DCreate_v2(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
  std::shared_ptr<Context> context;
  if (out == nullptr || descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  std::shared_ptr<Array> array;
  result = Array::Create(context, *descriptor, &array);
  if (result != CUDA_SUCCESS) return result;
  Driver::Get().arrays.Add(array);
  *out = array->handle();
  return CUDA_SUCCESS;
}

CUresult cuArrayCreate_v2(CUarray* out, const CUDA_ARRAY_DESCRIPTOR* flat) {
  if (flat == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY3D_DESCRIPTOR descriptor = {flat->Width,  flat->Height,      0,
                                              flat->Format, flat->NumChannels, 0};
  return api::cuArray3DCreate_v2(out, &descriptor);
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* descriptor, CUarray handle) {
  std::shared_ptr<Array> array;
  if (descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindArray(handle, &array);
  if (result == CUDA_SUCCESS) *descriptor = array->descriptor();
  return result;
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* descriptor, CUarray handle) {
  std::shared_ptr<Array> array;
  if (descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = FindArray(handle, &array);
  if (result == CUDA_SUCCESS) *descriptor = Flat(array->descriptor());
  return result;
}

CUresult cuArrayDestroy(CUarray handle) {
  std::shared_ptr<Array> array;
  const CUresult result = FindArray(handle, &array);
  if (result != CUDA_SUCCESS) return result;
  if (array->is_level())
    return Fail(CUDA_ERROR_INVALID_HANDLE, "a level ends with its mipmapped array");
  WaitForAll();
  Driver::Get().arrays.Remove(handle);
  return CUDA_SUCCESS;
}

CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* requirements, CUarray handle,
                                      CUdevice) {
  std::shared_ptr<Array> array;
  const CUresult result = FindArray(handle, &array);
  return result == CUDA_SUCCESS ? Requirements(array->bytes(), requirements) : result;
}

// No format here has more than one plane.
CUresult cuArrayGetPlane(CUarray*, CUarray handle, unsigned int) {
  std::shared_ptr<Array> array;
  const CUresult result = FindArray(handle, &array);
  return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : result;
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray* out, const CUDA_ARRAY3D_DESCRIPTOR* descriptor,
                                unsigned int levels) {
  std::shared_ptr<Context> context;
  if (out == nullptr || descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CurrentContext(&context);
  if (result != CUDA_SUCCESS) return result;
  std::shared_ptr<MipmappedArray> array;
  result = MipmappedArray::Create(context, *descriptor, levels, &array);
  if (result != CUDA_SUCCESS) return result;
  for (const std::shared_ptr<Array>& level : array->levels()) Driver::Get().arrays.Add(level);
  Driver::Get().mipmapped_arrays.Add(array);
  *out = array->handle();
  return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayGetLevel(CUarray* level, CUmipmappedArray handle, unsigned int number) {
  const std::shared_ptr<MipmappedArray> array = Driver::Get().mipmapped_arrays.Find(handle);
  if (level == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (number >= array->levels().size()) return CUDA_ERROR_INVALID_VALUE;
  *level = array->levels()[number]->handle();
  return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray handle) {
  const std::shared_ptr<MipmappedArray> array = Driver::Get().mipmapped_arrays.Remove(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  WaitForAll();
  for (const std::shared_ptr<Array>& level : array->levels())
    Driver::Get().arrays.Remove(level.get());
  return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* requirements,
                                               CUmipmappedArray handle, CUdevice) {
  const std::shared_ptr<MipmappedArray> array = Driver::Get().mipmapped_arrays.Find(handle);
  if (array == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  uint64_t bytes = 0;
  for (const std::shared_ptr<Array>& level : array->levels()) bytes += level->bytes();
  return Requirements(bytes, requirements);
}

}  // namespace softgpu::api
