// Managed memory (shim/managed_memory.h). Its pages stay on the host, where the device reaches
// them: prefetching, advice and attaching to a stream check what they are told, and have nothing to
// do.
#include <cstring>

#include "shim/driver/local.h"
#include "shim/driver/ready.h"
#include "shim/graphs/capture.h"
#include "shim/memory.h"
#include "shim/state.h"
#include "shim/streams.h"

namespace local {
namespace {

using shim::Allocation;
using shim::Context;
using shim::State;
using shim::Stream;
using shim::Streams;

bool IsManaged(CUdeviceptr address, size_t bytes) {
  Allocation found;
  return bytes != 0 && State::Process().allocations.Find(address, &found) &&
         found.kind == Allocation::Kind::kManaged && bytes <= found.bytes - (address - found.base);
}

CUresult CheckManaged(CUdeviceptr address, size_t bytes) {
  Context* context = nullptr;
  if (const CUresult result = State::Process().Current(&context); result != CUDA_SUCCESS)
    return result;
  return IsManaged(address, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CheckUsable(CUstream handle) {
  Stream* stream = nullptr;
  const CUresult result = Streams::Process().UseCurrent(handle, &stream);
  if (result != CUDA_SUCCESS) return result;
  return shim::graphs::RefuseWork(*stream).value_or(CUDA_SUCCESS);
}

CUresult CheckOrdered(CUdeviceptr address, size_t bytes, CUstream stream) {
  const CUresult result = CheckManaged(address, bytes);
  return result == CUDA_SUCCESS ? CheckUsable(stream) : result;
}

CUresult CheckBatch(const CUdeviceptr* addresses, const size_t* sizes, size_t count,
                    unsigned long long flags, CUstream stream) {
  if (addresses == nullptr || sizes == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const CUresult result = CheckOrdered(addresses[i], sizes[i], stream);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned flags) {
  Context* context = nullptr;
  uint64_t value = 0;
  if (const CUresult result = State::Process().Current(&context, &value); result != CUDA_SUCCESS)
    return result;
  const bool attached = flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST;
  if (address == nullptr || bytes == 0 || !attached) return CUDA_ERROR_INVALID_VALUE;
  uint64_t made = 0;
  const CUresult result = shim::Memory::AllocateManaged(*context, value, bytes, &made);
  if (result == CUDA_SUCCESS) *address = made;
  return result;
}

CUresult cuMemPrefetchAsync(CUdeviceptr address, size_t bytes, CUdevice, CUstream stream) {
  return CheckOrdered(address, bytes, stream);
}
CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation, unsigned flags,
                               CUstream stream) {
  return flags == 0 ? CheckOrdered(address, bytes, stream) : CUDA_ERROR_INVALID_VALUE;
}
CUresult cuMemAdvise(CUdeviceptr address, size_t bytes, CUmem_advise, CUdevice) {
  return CheckManaged(address, bytes);
}
CUresult cuMemAdvise_v2(CUdeviceptr address, size_t bytes, CUmem_advise, CUmemLocation) {
  return CheckManaged(address, bytes);
}

CUresult cuMemPrefetchBatchAsync(CUdeviceptr* addresses, size_t* sizes, size_t count,
                                 CUmemLocation*, size_t*, size_t, unsigned long long flags,
                                 CUstream stream) {
  return CheckBatch(addresses, sizes, count, flags, stream);
}
// Discarded bytes are undefined, which includes what they were.
CUresult cuMemDiscardBatchAsync(CUdeviceptr* addresses, size_t* sizes, size_t count,
                                unsigned long long flags, CUstream stream) {
  return CheckBatch(addresses, sizes, count, flags, stream);
}
CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr* addresses, size_t* sizes, size_t count,
                                           CUmemLocation*, size_t*, size_t,
                                           unsigned long long flags, CUstream stream) {
  return CheckBatch(addresses, sizes, count, flags, stream);
}

// All of the memory, or a length of 0, which means all.
CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, size_t bytes,
                                unsigned flags) {
  const bool known =
      flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST || flags == CU_MEM_ATTACH_SINGLE;
  if (!known) return CUDA_ERROR_INVALID_VALUE;
  return CheckOrdered(address, bytes == 0 ? 1 : bytes, stream);
}

// No advice changes anything, so none is told; where pages were prefetched to or are preferred to
// be is nowhere.
CUresult cuMemRangeGetAttribute(void* data, size_t data_bytes, CUmem_range_attribute attribute,
                                CUdeviceptr address, size_t bytes) {
  constexpr size_t kWord = sizeof(int);
  if (data == nullptr || data_bytes == 0 || data_bytes % kWord != 0)
    return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = CheckManaged(address, bytes);
  if (result != CUDA_SUCCESS) return result;
  int word = CU_DEVICE_INVALID;
  switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
      word = 0;
      data_bytes = kWord;
      break;
    default:
      break;
  }
  for (size_t at = 0; at < data_bytes; at += kWord)
    std::memcpy(static_cast<char*>(data) + at, &word, kWord);
  return CUDA_SUCCESS;
}

CUresult cuMemRangeGetAttributes(void** data, size_t* data_bytes, CUmem_range_attribute* attributes,
                                 size_t count, CUdeviceptr address, size_t bytes) {
  if (data == nullptr || data_bytes == nullptr || attributes == nullptr)
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; ++i) {
    const CUresult result =
        local::cuMemRangeGetAttribute(data[i], data_bytes[i], attributes[i], address, bytes);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

}  // namespace local
