// Device memory of the fake driver: host memory, elsewhere than at the device's addresses, so that
// a client that touches such an address itself still faults.
//
// An extent is a part of a memfd, so its bytes stay the same wherever it is mapped; an address
// without a mapping faults. Thread safety: any thread.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "base/mutex.h"
#include "daemon/worker/extent_source.h"
#include "ipc/driver_table.h"

namespace shim_test {

// Fills in what concerns device memory: mappings, copies and fills.
void AddMemory(ipc::DriverTable* table);

class FakeMemory : public worker::ExtentSource {
 public:
  static constexpr uint64_t kDeviceBytes = uint64_t{4} << 30;
  // The one session has this slot.
  static constexpr uint32_t kSlot = 5;

  static FakeMemory& Process();

  // The bytes behind an address of the device, or of the host.
  std::byte* At(uint64_t address) const;
  // The device has so many bytes from now on.
  void SetDeviceBytes(uint64_t bytes) EXCLUDES(mutex_);

  CUresult Map(CUdeviceptr address, size_t bytes, CUmemGenericAllocationHandle extent)
      EXCLUDES(mutex_);
  CUresult Unmap(CUdeviceptr address, size_t bytes) EXCLUDES(mutex_);

  // --- worker::ExtentSource
  CUresult Create(const worker::ExtentRecord& wanted, worker::Extent* extent) override
      EXCLUDES(mutex_);
  void Free(const worker::Extent& extent) override EXCLUDES(mutex_);
  void Drop(const worker::Extent& extent) override { Free(extent); }
  CUresult List(const worker::Owner& owner, std::vector<worker::ExtentRecord>* extents) override
      EXCLUDES(mutex_);
  CUresult Import(const worker::ExtentRecord&, worker::Extent*) override {
    return CUDA_ERROR_NOT_SUPPORTED;  // there is no other worker to import from
  }
  void ChangeOwner(const worker::Extent& extent, const worker::Owner& owner, uint64_t address,
                   uint64_t range) override EXCLUDES(mutex_);
  CUresult MemoryInfo(int device, uint64_t* free_bytes, uint64_t* total_bytes) override
      EXCLUDES(mutex_);

 private:
  FakeMemory();

  std::byte* const shadow_;  // of the slot's device addresses
  const int file_;
  base::Mutex mutex_;
  uint64_t device_bytes_ GUARDED_BY(mutex_) = kDeviceBytes;
  uint64_t used_bytes_ GUARDED_BY(mutex_) = 0;
  uint64_t file_bytes_ GUARDED_BY(mutex_) = 0;  // no extent gets a place again
  std::map<uint64_t, worker::ExtentRecord> extents_ GUARDED_BY(mutex_);  // by id
  std::map<CUdeviceptr, uint64_t> mappings_ GUARDED_BY(mutex_);          // bytes, by start
};

}  // namespace shim_test
