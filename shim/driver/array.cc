// Arrays and mipmapped arrays.
#include "shim/arrays.h"
#include "shim/devices.h"
#include "shim/driver/local.h"
#include "shim/driver/ready.h"

namespace local {
namespace {

using shim::Array;
using shim::Arrays;
using shim::Context;
using shim::State;

uint64_t ArrayBits(const void* handle) { return reinterpret_cast<uint64_t>(handle); }

CUresult Find(CUarray handle, const Array** array) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  *array = State::Process().arrays.Find(ArrayBits(handle));
  return *array != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

}  // namespace

CUresult cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor) {
  Context* context = nullptr;
  uint64_t value = 0;
  if (const CUresult result = State::Process().Current(&context, &value); result != CUDA_SUCCESS)
    return result;
  if (array == nullptr || descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Arrays::Create(*context, value, *descriptor, array);
}

CUresult cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* flat) {
  CUDA_ARRAY3D_DESCRIPTOR descriptor = {};
  if (flat != nullptr) {
    descriptor = {flat->Width, flat->Height, 0, flat->Format, flat->NumChannels, 0};
  }
  return local::cuArray3DCreate_v2(array, flat != nullptr ? &descriptor : nullptr);
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* descriptor, CUarray handle) {
  const Array* array = nullptr;
  const CUresult result = Find(handle, &array);
  if (descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS) *descriptor = array->descriptor;
  return result;
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* descriptor, CUarray handle) {
  CUDA_ARRAY3D_DESCRIPTOR whole = {};
  const CUresult result = local::cuArray3DGetDescriptor_v2(&whole, handle);
  if (descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS)
    *descriptor = {whole.Width, whole.Height, whole.Format, whole.NumChannels};
  return result;
}

// No format of arrays here has more than one plane.
CUresult cuArrayGetPlane(CUarray*, CUarray handle, unsigned) {
  const Array* array = nullptr;
  const CUresult result = Find(handle, &array);
  return result == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : result;
}

CUresult cuArrayDestroy(CUarray array) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  return Arrays::End(ArrayBits(array));
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* descriptor,
                                unsigned levels) {
  Context* context = nullptr;
  uint64_t value = 0;
  if (const CUresult result = State::Process().Current(&context, &value); result != CUDA_SUCCESS)
    return result;
  if (array == nullptr || descriptor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Arrays::CreateMipmap(*context, value, *descriptor, levels, array);
}

CUresult cuMipmappedArrayGetLevel(CUarray* level, CUmipmappedArray array, unsigned number) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  if (level == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Arrays::Level(ArrayBits(array), number, level);
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  if (const CUresult result = Ready(); result != CUDA_SUCCESS) return result;
  return Arrays::EndMipmap(ArrayBits(array));
}

}  // namespace local
