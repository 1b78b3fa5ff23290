// Device memory: counted before it is allocated, and one view of how much there is.
#include <algorithm>

#include "shim/inprocess/next_driver.h"
#include "shim/inprocess/own.h"
#include "shim/inprocess/process.h"

namespace shim::inprocess::own {
namespace {

uint64_t NameOf(uint64_t address) { return address; }
uint64_t NameOf(const void* handle) { return reinterpret_cast<uint64_t>(handle); }

// next(made, a...) allocates `bytes`, known by *made from then on.
template <class Made, class... A>
CUresult Allocate(Kind kind, uint64_t bytes, CUresult (*next)(Made*, A...), Made* made, A... a) {
  if (next == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  Process* const process = Process::Get();
  if (process == nullptr || made == nullptr) return next(made, a...);
  if (const CUresult taken = process->account().Take(bytes); taken != CUDA_SUCCESS) return taken;
  const CUresult result = next(made, a...);
  if (result == CUDA_SUCCESS) {
    process->account().Remember(kind, NameOf(*made), bytes);
  } else {
    process->account().Give(bytes);
  }
  process->WakeIfSurplus();
  return result;
}

// next(name, a...) frees what Allocate has made. Forgotten first: the driver may give the same name
// out again at once.
template <class Name, class... A>
CUresult Free(Kind kind, CUresult (*next)(Name, A...), Name name, A... a) {
  if (next == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  Process* const process = Process::Get();
  if (process == nullptr) return next(name, a...);
  const uint64_t bytes = process->account().Forget(kind, NameOf(name));
  const CUresult result = next(name, a...);
  if (result == CUDA_SUCCESS) {
    process->account().Give(bytes);
  } else if (bytes != 0) {
    process->account().Remember(kind, NameOf(name), bytes);
  }
  process->WakeIfSurplus();
  return result;
}

uint64_t Rows(uint64_t width, uint64_t height) {
  constexpr uint64_t kPitch = 512;
  uint64_t bytes = 0;
  if (__builtin_mul_overflow((width + kPitch - 1) / kPitch * kPitch, height, &bytes))
    return UINT64_MAX;
  return bytes;
}

uint64_t BytesOf(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    default:
      return 4;
  }
}

uint64_t BytesOf(const CUDA_ARRAY3D_DESCRIPTOR* array) {
  if (array == nullptr) return 0;
  const uint64_t element = BytesOf(array->Format) * array->NumChannels;
  return Rows(array->Width * element, std::max<size_t>(array->Height, 1)) *
         std::max<size_t>(array->Depth, 1);
}

}  // namespace

// --- linear memory -------------------------------------------------------------------------------

CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  return Allocate(Kind::kMemory, bytes, Next().cuMemAlloc_v2, address, bytes);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                            unsigned int element) {
  return Allocate(Kind::kMemory, Rows(width, height), Next().cuMemAllocPitch_v2, address, pitch,
                  width, height, element);
}

CUresult cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned int flags) {
  return Allocate(Kind::kMemory, bytes, Next().cuMemAllocManaged, address, bytes, flags);
}

CUresult cuMemFree_v2(CUdeviceptr address) {
  return Free(Kind::kMemory, Next().cuMemFree_v2, address);
}

// --- in stream order -----------------------------------------------------------------------------

CUresult cuMemAllocAsync(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return Allocate(Kind::kMemory, bytes, Next().cuMemAllocAsync, address, bytes, stream);
}
CUresult cuMemAllocAsync_ptsz(CUdeviceptr* address, size_t bytes, CUstream stream) {
  return Allocate(Kind::kMemory, bytes, Next().cuMemAllocAsync_ptsz, address, bytes, stream);
}
CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                                 CUstream stream) {
  return Allocate(Kind::kMemory, bytes, Next().cuMemAllocFromPoolAsync, address, bytes, pool,
                  stream);
}
CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* address, size_t bytes, CUmemoryPool pool,
                                      CUstream stream) {
  return Allocate(Kind::kMemory, bytes, Next().cuMemAllocFromPoolAsync_ptsz, address, bytes, pool,
                  stream);
}
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) {
  return Free(Kind::kMemory, Next().cuMemFreeAsync, address, stream);
}
CUresult cuMemFreeAsync_ptsz(CUdeviceptr address, CUstream stream) {
  return Free(Kind::kMemory, Next().cuMemFreeAsync_ptsz, address, stream);
}

// --- physical memory, arrays ---------------------------------------------------------------------

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                     const CUmemAllocationProp* properties, unsigned long long flags) {
  if (properties == nullptr || properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    return Next().cuMemCreate == nullptr ? CUDA_ERROR_NOT_SUPPORTED
                                         : Next().cuMemCreate(handle, bytes, properties, flags);
  }
  return Allocate(Kind::kPhysical, bytes, Next().cuMemCreate, handle, bytes, properties, flags);
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return Free(Kind::kPhysical, Next().cuMemRelease, handle);
}

CUresult cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* wanted) {
  const uint64_t bytes = wanted == nullptr
                             ? 0
                             : Rows(wanted->Width * BytesOf(wanted->Format) * wanted->NumChannels,
                                    std::max<size_t>(wanted->Height, 1));
  return Allocate(Kind::kArray, bytes, Next().cuArrayCreate_v2, array, wanted);
}
CUresult cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* wanted) {
  return Allocate(Kind::kArray, BytesOf(wanted), Next().cuArray3DCreate_v2, array, wanted);
}
CUresult cuArrayDestroy(CUarray array) { return Free(Kind::kArray, Next().cuArrayDestroy, array); }
CUresult cuMipmappedArrayCreate(CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* wanted,
                                unsigned int levels) {
  // Each level has a quarter of the one before, at most.
  return Allocate(Kind::kArray, BytesOf(wanted) / 3 * 4, Next().cuMipmappedArrayCreate, array,
                  wanted, levels);
}
CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) {
  return Free(Kind::kArray, Next().cuMipmappedArrayDestroy, array);
}

// --- how much there is ---------------------------------------------------------------------------

CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  if (Next().cuMemGetInfo_v2 == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  const CUresult result = Next().cuMemGetInfo_v2(free, total);
  Process* const process = Process::Get();
  CUdevice device = 0;
  if (result != CUDA_SUCCESS || process == nullptr ||
      Next().cuCtxGetDevice(&device) != CUDA_SUCCESS) {
    return result;
  }
  const std::optional<ipc::control::MemoryReply> seen =
      process->account().Look(static_cast<uint32_t>(device));
  if (!seen.has_value()) return result;
  if (free != nullptr) *free = std::min<size_t>(*free, seen->free_bytes);
  if (total != nullptr) *total = std::min<size_t>(*total, seen->total_bytes);
  return result;
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  if (Next().cuDeviceTotalMem_v2 == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  const CUresult result = Next().cuDeviceTotalMem_v2(bytes, device);
  Process* const process = Process::Get();
  if (result != CUDA_SUCCESS || process == nullptr) return result;
  const std::optional<ipc::control::MemoryReply> seen =
      process->account().Look(static_cast<uint32_t>(device));
  if (seen.has_value()) *bytes = std::min<size_t>(*bytes, seen->total_bytes);
  return result;
}

}  // namespace shim::inprocess::own
