// Physical memory from the keeper: asks for extents, imports them, hands them over to a new keeper.
//
// Lists the extents that this worker holds. A keeper that replaces a lost keeper rebuilds its books
// from the lists of all workers. Of a lane that several workers have, the worker with a session
// inside tells the keeper (lane_claims.h). Thread safety: all methods from any thread; requests
// take turns.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/mutex.h"
#include "daemon/common/driver.h"
#include "daemon/worker/session.h"
#include "ipc/control.h"
#include "ipc/unique_fd.h"

namespace worker {

class KeeperExtents : public ExtentSource {
 public:
  KeeperExtents(const common::Driver& driver, std::string runtime_dir, uint32_t worker);

  CUresult Create(const ExtentRecord& wanted, Extent* extent) override;
  void Free(const Extent& extent) override;
  void Drop(const Extent& extent) override;
  CUresult List(const Owner& owner, std::vector<ExtentRecord>* extents) override;
  CUresult Import(const ExtentRecord& record, Extent* extent) override;
  void ChangeOwner(const Extent& extent, const Owner& owner, uint64_t address,
                   uint64_t range) override;
  std::shared_ptr<LaneClaim> ClaimOf(uint64_t lane) override { return claims_.Of(lane); }
  void Claim(uint64_t lane) override;
  CUresult Confirm(const Extent& extent) override;
  CUresult MemoryInfo(int device, uint64_t* free_bytes, uint64_t* total_bytes) override;

  // At the start, and when lanewayd says that a new keeper listens: connects, and hands our extents
  // over without waiting for the next request. The keeper stays while a worker is connected.
  void OnKeeperChanged();

 private:
  struct Held {
    ExtentRecord record;
    CUmemGenericAllocationHandle handle;
    ipc::UniqueFd fd;  // invalid when descriptors are scarce: exported anew when needed
    bool told = true;  // the present keeper knows that we have it
  };
  using Reply = ipc::control::Received<ipc::control::KeeperToWorker>;

  // A request and its reply; waits, bounded, for a new keeper when the connection fails.
  absl::StatusOr<Reply> Ask(const ipc::control::WorkerToKeeper& request) REQUIRES(mutex_);
  absl::StatusOr<Reply> AskOnce(const ipc::control::WorkerToKeeper& request,
                                std::span<const int> fds) REQUIRES(mutex_);
  absl::Status ConnectAndHandOver() REQUIRES(mutex_);
  // The extents that this worker hands over, by owner; those of a lane by address.
  std::vector<Held*> ToHandOver() REQUIRES(mutex_);
  absl::Status HandOver(const Held& held) REQUIRES(mutex_);
  // Imports the descriptor of a reply to CreateExtent or ImportExtent.
  CUresult Take(absl::StatusOr<Reply>* reply, ExtentRecord record, Extent* extent) REQUIRES(mutex_);
  void Leave(const Extent& extent, const ipc::control::WorkerToKeeper& word);

  const common::Driver& driver_;
  const std::string runtime_dir_;
  const uint32_t worker_;
  base::Mutex mutex_;
  base::CondVar keeper_changed_;
  ipc::UniqueFd socket_ GUARDED_BY(mutex_);
  std::map<uint64_t, Held> held_ GUARDED_BY(mutex_);
  LaneClaims claims_;
};

}  // namespace worker
