#include "tests/shim/fake_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <iterator>
#include <memory>

#include "ipc/calls/limits.h"
#include "tests/shim/fake_driver.h"
#include "tests/shim/fake_streams.h"

namespace shim_test {
namespace {

using ipc::limits::kDeviceArenaBytes;

constexpr uint64_t kArenaBase =
    ipc::limits::kSlotBase + FakeMemory::kSlot * ipc::limits::kSlotBytes;
// The driver has taken so many bytes of pageable memory when it returns.
constexpr size_t kPageableBytes = 64 << 10;

std::byte* At(uint64_t address) { return FakeMemory::Process().At(address); }
std::byte* At(const void* host) { return At(reinterpret_cast<uint64_t>(host)); }

void* Reserve(void* where, size_t bytes, int flags) {
  void* const at =
      mmap(where, bytes, PROT_NONE, flags | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  assert(at != MAP_FAILED);
  return at;
}

CUresult Copy(CUstream stream, std::byte* to, const std::byte* from, size_t bytes) {
  FakeStreams::Process().Submit(stream, [to, from, bytes] {
    std::memmove(to, from, bytes);
    return true;
  });
  return CUDA_SUCCESS;
}

CUresult ReserveAddresses(CUdeviceptr* address, size_t, size_t, CUdeviceptr hint,
                          unsigned long long) {
  *address = hint;
  return CUDA_SUCCESS;
}
CUresult MapExtent(CUdeviceptr address, size_t bytes, size_t, CUmemGenericAllocationHandle extent,
                   unsigned long long) {
  return FakeMemory::Process().Map(address, bytes, extent);
}
CUresult UnmapExtent(CUdeviceptr address, size_t bytes) {
  return FakeMemory::Process().Unmap(address, bytes);
}
CUresult RegisterHost(void*, size_t, unsigned) { return TakeFault("cuMemHostRegister_v2"); }

CUresult CopyIn(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  if (bytes > kPageableBytes) return Copy(stream, At(to), At(from), bytes);
  const std::byte* const first = At(from);
  FakeStreams::Process().Submit(
      stream, [to = At(to), taken = std::vector<std::byte>(first, first + bytes)] {
        std::memcpy(to, taken.data(), taken.size());
        return true;
      });
  return CUDA_SUCCESS;
}
CUresult CopyOut(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return Copy(stream, At(to), At(from), bytes);
}
CUresult CopyOutAtOnce(void* to, CUdeviceptr from, size_t bytes) {
  if (const CUresult fault = TakeFault("cuMemcpyDtoH_v2"); fault != CUDA_SUCCESS) return fault;
  std::memcpy(At(to), At(from), bytes);
  return CUDA_SUCCESS;
}
CUresult CopyUnified(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return Copy(stream, At(to), At(from), bytes);
}
CUresult CopyUnifiedAtOnce(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  std::memmove(At(to), At(from), bytes);
  return CUDA_SUCCESS;
}
CUresult CopyRows(const CUDA_MEMCPY2D* rows, CUstream stream) {
  assert(rows->srcMemoryType == CU_MEMORYTYPE_UNIFIED);
  assert(rows->dstMemoryType == CU_MEMORYTYPE_UNIFIED);
  FakeStreams::Process().Submit(stream, [rows = *rows] {
    for (size_t row = 0; row < rows.Height; ++row)
      std::memmove(At(rows.dstDevice) + row * rows.dstPitch,
                   At(rows.srcDevice) + row * rows.srcPitch, rows.WidthInBytes);
    return true;
  });
  return CUDA_SUCCESS;
}
CUresult Fill(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream) {
  FakeStreams::Process().Submit(stream, [to = At(to), value, bytes] {
    std::memset(to, value, bytes);
    return true;
  });
  return CUDA_SUCCESS;
}

}  // namespace

FakeMemory& FakeMemory::Process() {
  static FakeMemory* const memory = new FakeMemory;
  return *memory;
}

FakeMemory::FakeMemory()
    : shadow_(static_cast<std::byte*>(Reserve(nullptr, kDeviceArenaBytes, 0))),
      file_(memfd_create("device", MFD_CLOEXEC)) {
  assert(file_ >= 0);
}

std::byte* FakeMemory::At(uint64_t address) const {
  const uint64_t offset = address - kArenaBase;
  return offset < kDeviceArenaBytes ? shadow_ + offset : reinterpret_cast<std::byte*>(address);
}

void FakeMemory::SetDeviceBytes(uint64_t bytes) {
  const base::MutexLock lock(&mutex_);
  device_bytes_ = bytes;
}

// An extent's handle is its place in the file, counted from 1.
CUresult FakeMemory::Map(CUdeviceptr address, size_t bytes, CUmemGenericAllocationHandle extent) {
  const base::MutexLock lock(&mutex_);
  const std::map<CUdeviceptr, uint64_t>::const_iterator next =
      mappings_.lower_bound(address + bytes);
  if (next != mappings_.begin()) {
    const std::map<CUdeviceptr, uint64_t>::const_iterator before = std::prev(next);
    if (before->first + before->second > address) return CUDA_ERROR_INVALID_VALUE;
  }
  void* const at = mmap(At(address), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_,
                        static_cast<off_t>(extent - 1));
  if (at == MAP_FAILED) return CUDA_ERROR_UNKNOWN;
  mappings_[address] = bytes;
  return CUDA_SUCCESS;
}

CUresult FakeMemory::Unmap(CUdeviceptr address, size_t bytes) {
  const base::MutexLock lock(&mutex_);
  const std::map<CUdeviceptr, uint64_t>::iterator found = mappings_.find(address);
  // A mapping goes whole.
  if (found == mappings_.end() || found->second != bytes) return CUDA_ERROR_INVALID_VALUE;
  mappings_.erase(found);
  Reserve(At(address), bytes, MAP_FIXED);
  return CUDA_SUCCESS;
}

CUresult FakeMemory::Create(const worker::ExtentRecord& wanted, worker::Extent* extent) {
  const base::MutexLock lock(&mutex_);
  if (used_bytes_ > device_bytes_ || wanted.bytes > device_bytes_ - used_bytes_)
    return CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t handle = file_bytes_ + 1;
  file_bytes_ += wanted.bytes;
  used_bytes_ += wanted.bytes;
  if (ftruncate(file_, static_cast<off_t>(file_bytes_)) != 0) return CUDA_ERROR_UNKNOWN;
  worker::ExtentRecord& record = extents_[handle] = wanted;
  record.id = handle;
  *extent = {record.id, record.bytes, handle, false};
  return CUDA_SUCCESS;
}

void FakeMemory::Free(const worker::Extent& extent) {
  const base::MutexLock lock(&mutex_);
  if (extents_.erase(extent.id) == 0) return;
  used_bytes_ -= extent.bytes;
  fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            static_cast<off_t>(extent.handle - 1), static_cast<off_t>(extent.bytes));
}

CUresult FakeMemory::List(const worker::Owner& owner, std::vector<worker::ExtentRecord>* extents) {
  const base::MutexLock lock(&mutex_);
  extents->clear();
  for (const std::pair<const uint64_t, worker::ExtentRecord>& entry : extents_) {
    if (entry.second.owner == owner) extents->push_back(entry.second);
  }
  std::sort(extents->begin(), extents->end(),
            [](const worker::ExtentRecord& a, const worker::ExtentRecord& b) {
              return a.address < b.address;
            });
  return CUDA_SUCCESS;
}

void FakeMemory::ChangeOwner(const worker::Extent& extent, const worker::Owner& owner,
                             uint64_t address, uint64_t range) {
  const base::MutexLock lock(&mutex_);
  worker::ExtentRecord& record = extents_.at(extent.id);
  record.owner = owner;
  record.address = address;
  record.range = range;
}

CUresult FakeMemory::MemoryInfo(int, uint64_t* free_bytes, uint64_t* total_bytes) {
  const base::MutexLock lock(&mutex_);
  *total_bytes = device_bytes_;
  *free_bytes = device_bytes_ > used_bytes_ ? device_bytes_ - used_bytes_ : 0;
  return CUDA_SUCCESS;
}

void AddMemory(ipc::DriverTable* table) {
  table->cuMemAddressReserve = &ReserveAddresses;
  table->cuMemMap = &MapExtent;
  table->cuMemUnmap = &UnmapExtent;
  table->cuMemHostRegister_v2 = &RegisterHost;
  table->cuMemcpyHtoDAsync_v2 = &CopyIn;
  table->cuMemcpyDtoHAsync_v2 = &CopyOut;
  table->cuMemcpyDtoH_v2 = &CopyOutAtOnce;
  table->cuMemcpyAsync = &CopyUnified;
  table->cuMemcpyDtoDAsync_v2 = &CopyUnified;
  table->cuMemcpy = &CopyUnifiedAtOnce;
  table->cuMemcpy2DAsync_v2 = &CopyRows;
  table->cuMemsetD8Async = &Fill;
}

}  // namespace shim_test
