// The keeper's books: which extent exists, whose it is, and how much is left. Memory outlives
// workers: an extent goes when its worker frees it, or when lanewayd says that its worker's process
// is gone.
//
// The driver's functions used here need no context (cuMemCreate works after cuInit alone), so no
// fault of a kernel reaches this process. Thread safety: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "daemon/common/driver.h"
#include "ipc/control.h"
#include "ipc/unique_fd.h"

namespace keeper {

// What a worker's process needs of a GPU for itself: its context, code and library workspaces. The
// software GPU needs none, so that programs see the same memory with and without Laneway.
inline constexpr int64_t kCudaReserveBytes = int64_t{1} << 30;

class Keeper {
 public:
  // reserve_bytes < 0: by kind of device.
  Keeper(const common::Driver& driver, int64_t reserve_bytes);

  // cuInit and a look at the devices; the error is a sentence.
  absl::Status Open();

  // On success *fd is the extent's descriptor, to be sent and closed.
  CUresult Create(uint32_t worker, const ipc::control::CreateExtent& request, uint64_t* id,
                  ipc::UniqueFd* fd);
  // A worker hands over an extent that an earlier keeper made.
  CUresult Adopt(uint32_t worker, const ipc::control::AdoptExtent& request,
                 const ipc::UniqueFd& fd);
  // Ignores an extent that is not this worker's.
  void Free(uint32_t worker, uint64_t id);
  // Returns the number of bytes freed.
  uint64_t ReleaseWorker(uint32_t worker);

  ipc::control::MemoryReply Memory(uint32_t device) const;
  ipc::control::KeeperReady Describe() const;
  std::vector<ipc::control::UsageList> Usages() const;
  bool Empty() const { return extents_.empty(); }

 private:
  struct Device {
    CUdevice handle = 0;
    uint64_t capacity_bytes = 0;
    uint64_t used_bytes = 0;
    uint64_t granularity_bytes = 0;
    char name[ipc::control::kNameBytes] = {};
  };
  struct Extent {
    CUmemGenericAllocationHandle handle = 0;
    uint64_t bytes = 0;
    uint64_t session_id = 0;
    uint32_t worker = 0;
    uint32_t device = 0;
  };
  using Extents = std::map<uint64_t, Extent>;

  absl::Status OpenDevice(int ordinal);
  // OUT_OF_MEMORY or INVALID_VALUE when `bytes` more can't be had on this device.
  CUresult CheckRoom(uint32_t device, uint64_t bytes) const;
  void Release(Extents::iterator extent);

  const common::Driver& driver_;
  const int64_t reserve_bytes_;
  std::vector<Device> devices_;
  Extents extents_;
  uint64_t next_id_;
};

}  // namespace keeper
