#include "shim/copy_box.h"

#include "shim/array_copy.h"
#include "shim/registered_memory.h"

namespace shim {
namespace {

// One side of a copy, as the structures describe it.
struct End {
  CUmemorytype type;
  const void* host;
  CUdeviceptr device;
  size_t x, y, z, pitch, height;
};

// A pitch of 0 stands for packed rows, a height of 0 for slices as high as the copy.
CUresult Resolve(const End& end, const CopyBox& box, uint64_t* address, size_t* pitch,
                 size_t* slice) {
  if (end.type == CU_MEMORYTYPE_ARRAY) return CUDA_ERROR_NOT_SUPPORTED;
  const bool host = end.type == CU_MEMORYTYPE_HOST;
  // A device end must be one: host memory may not be read in its place.
  if (end.type == CU_MEMORYTYPE_DEVICE && Memory::PlaceOf(end.device) == Memory::Place::kHost)
    return CUDA_ERROR_INVALID_VALUE;
  *pitch = end.pitch != 0 ? end.pitch : box.rows.width;
  *slice = *pitch * (end.height != 0 ? end.height : box.rows.height);
  *address = (host ? reinterpret_cast<uint64_t>(end.host) : end.device) + end.z * *slice +
             end.y * *pitch + end.x;
  return CUDA_SUCCESS;
}

size_t SpanOf(size_t pitch, size_t slice, const CopyBox& box) {
  return (box.depth - 1) * slice + (box.rows.height - 1) * pitch + box.rows.width;
}

bool IsLive(uint64_t address, size_t pitch, size_t slice, const CopyBox& box) {
  return Memory::PlaceOf(address) == Memory::Place::kHost ||
         Memory::IsLive(address, SpanOf(pitch, slice, box));
}

}  // namespace

CUresult BoxOf(const CUDA_MEMCPY3D& params, CopyBox* box) {
  if (params.srcLOD != 0 || params.dstLOD != 0) return CUDA_ERROR_NOT_SUPPORTED;
  PitchedCopy& rows = box->rows;
  rows.width = params.WidthInBytes;
  rows.height = params.Height;
  box->depth = params.Depth;
  const End to = {params.dstMemoryType, params.dstHost, params.dstDevice, params.dstXInBytes,
                  params.dstY,          params.dstZ,    params.dstPitch,  params.dstHeight};
  const End from = {params.srcMemoryType, params.srcHost, params.srcDevice, params.srcXInBytes,
                    params.srcY,          params.srcZ,    params.srcPitch,  params.srcHeight};
  const CUresult result = Resolve(to, *box, &rows.to, &rows.to_pitch, &box->to_slice);
  if (result != CUDA_SUCCESS) return result;
  const CUresult found = Resolve(from, *box, &rows.from, &rows.from_pitch, &box->from_slice);
  if (found != CUDA_SUCCESS || box->empty()) return found;
  RegisteredMemory& registered = RegisteredMemory::Process();
  rows.to = registered.Seen(rows.to, SpanOf(rows.to_pitch, box->to_slice, *box));
  rows.from = registered.Seen(rows.from, SpanOf(rows.from_pitch, box->from_slice, *box));
  return CUDA_SUCCESS;
}

CUresult CheckBox(const CopyBox& box) {
  if (box.empty()) return CUDA_SUCCESS;
  const PitchedCopy& rows = box.rows;
  if (rows.height > 1 && (rows.to_pitch < rows.width || rows.from_pitch < rows.width))
    return CUDA_ERROR_INVALID_VALUE;
  return IsLive(rows.to, rows.to_pitch, box.to_slice, box) &&
                 IsLive(rows.from, rows.from_pitch, box.from_slice, box)
             ? CUDA_SUCCESS
             : CUDA_ERROR_INVALID_VALUE;
}

CUresult CheckCopy(const CUDA_MEMCPY3D& params) {
  if (HasArray(params)) return CheckCopyWithArray(params);
  CopyBox box;
  const CUresult result = BoxOf(params, &box);
  return result == CUDA_SUCCESS ? CheckBox(box) : result;
}

CUresult CopyBoxes(const CopyBox& box, const Stream& stream) {
  PitchedCopy rows = box.rows;
  for (size_t slice = 0; slice < box.depth; ++slice) {
    if (const CUresult result = CopyRows(rows, stream); result != CUDA_SUCCESS) return result;
    rows.to += box.to_slice;
    rows.from += box.from_slice;
  }
  return CUDA_SUCCESS;
}

}  // namespace shim
