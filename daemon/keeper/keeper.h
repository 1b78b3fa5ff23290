// The keeper's books: which extent exists, whose it is, which workers have it, how much is left.
//
// Memory outlives workers, and sessions are rebuilt around it. An extent belongs to a session or a
// lane. It goes when its owner gives it up (FreeExtent) or has ended (ReleaseOwner), and then only
// once no worker has the extent mapped. The keeper learns of that from the worker, or from the end
// of the worker's process.
//
// The driver's functions used here need no context (cuMemCreate works after cuInit alone), so no
// fault of a kernel reaches this process; nor can it clear memory: it tells the worker when to.
// Thread safety: one thread.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "daemon/common/driver.h"
#include "ipc/control.h"
#include "ipc/unique_fd.h"

namespace keeper {

// What a worker's process needs of a GPU for itself: its context, code and library workspaces. The
// software GPU needs none, so that programs see the same memory with and without Laneway.
inline constexpr int64_t kCudaReserveBytes = int64_t{1} << 30;

// When memory must be zeroed before it is given out: when another tenant may have written it, or
// always.
enum class Scrub { kTenants, kAlways };

class Keeper {
 public:
  using ExtentRecord = ipc::control::ExtentRecord;
  using Owner = ipc::control::Owner;

  // reserve_bytes < 0: by kind of device.
  Keeper(const common::Driver& driver, int64_t reserve_bytes, Scrub scrub = Scrub::kTenants);

  // cuInit and a look at the devices; the error is a sentence.
  absl::Status Open();

  // On success *fd is the extent's descriptor, to be sent and closed.
  ipc::control::ExtentReply Create(uint32_t worker, const ExtentRecord& wanted, ipc::UniqueFd* fd);
  // A session of the worker is to enter the lane: who was inside before is late.
  void Claim(uint32_t worker, uint64_t lane) { claims_[lane] = worker; }
  // A worker hands over an extent that an earlier keeper made. Other workers may have it, too, and
  // may still believe it a lane's when it is a session's already. CUDA_ERROR_ILLEGAL_STATE: a
  // session of another worker has entered the lane, and found it without the extent.
  CUresult Adopt(uint32_t worker, const ExtentRecord& extent, const ipc::UniqueFd& fd);
  // One more worker maps it. CUDA_ERROR_INVALID_VALUE when it is not there or given up.
  ipc::control::ExtentReply Import(uint32_t worker, uint64_t id, ipc::UniqueFd* fd);
  // The worker has it no more: given up, or kept by its owner. Ignored when it does not have it.
  void Free(uint32_t worker, uint64_t id) { Leave(worker, id, true); }
  void Drop(uint32_t worker, uint64_t id) { Leave(worker, id, false); }
  void ChangeOwner(uint32_t worker, const ipc::control::ChangeOwner& change);
  // What the owner has, by address, in as many messages as it takes.
  std::vector<ipc::control::ExtentList> List(const Owner& owner) const;
  // A program with a context of its own has this much in all. Counts at most the whole device.
  void CountOutside(const ipc::control::CountOutside& count);
  // Returns the number of bytes that are given up now; they are free when no worker has them.
  uint64_t ReleaseOwner(const Owner& owner);
  // The worker's process is gone. Returns the number of bytes freed.
  uint64_t ReleaseWorker(uint32_t worker);

  ipc::control::MemoryReply Memory(uint32_t device) const;
  ipc::control::KeeperReady Describe() const;
  std::vector<ipc::control::UsageList> Usages() const;
  bool Empty() const { return extents_.empty(); }

 private:
  struct Device {
    CUdevice handle = 0;
    ipc::control::DeviceRecord record;
    uint64_t granularity_bytes = 0;
    std::set<uint32_t> writers;  // tenants whose memory came back since we began
  };
  struct Extent {
    CUmemGenericAllocationHandle handle = 0;
    ExtentRecord record;
    std::set<uint32_t> workers;  // that have it
    bool given_up = false;       // freed when the last of them leaves
  };
  using Extents = std::map<uint64_t, Extent>;

  absl::Status OpenDevice(int ordinal);
  // OUT_OF_MEMORY or INVALID_VALUE when `bytes` more can't be had on this device.
  CUresult CheckRoom(uint32_t device, uint64_t bytes) const;
  CUresult Export(CUmemGenericAllocationHandle handle, ipc::UniqueFd* fd) const;
  bool MustClear(const ExtentRecord& extent) const;
  static void TakeOwner(const ExtentRecord& told, ExtentRecord* known);
  bool IsLate(uint32_t worker, const Owner& owner) const;
  void Leave(uint32_t worker, uint64_t id, bool give_up);
  void ReleaseIfUnused(Extents::iterator extent);

  const common::Driver& driver_;
  const int64_t reserve_bytes_;
  const Scrub scrub_;
  std::vector<Device> devices_;
  Extents extents_;
  std::map<std::pair<Owner, uint32_t>, uint64_t> outside_;  // by owner and device
  std::map<uint64_t, uint32_t> claims_;                     // worker by lane
  uint64_t next_id_;
};

}  // namespace keeper
