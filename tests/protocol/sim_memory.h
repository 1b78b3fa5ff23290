// The device's memory in a simulated world: mappings, the real keeper behind queues, and each
// worker's way to it. Thread safety: one thread.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <variant>
#include <vector>

#include "daemon/keeper/keeper.h"
#include "daemon/worker/extent_source.h"
#include "ipc/driver_table.h"
#include "tests/protocol/scene.h"

namespace protocol {

// What is mapped where. A session's addresses are its own, so one table holds all workers'.
class SimDevice {
 public:
  struct Mapping {
    uint64_t extent = 0;
    uint64_t bytes = 0;
  };
  explicit SimDevice(uint64_t capacity_bytes);
  ~SimDevice();
  SimDevice(const SimDevice&) = delete;

  // Every entry but those for mapping is null.
  const ipc::DriverTable& worker_driver() const { return worker_driver_; }
  const common::Driver& keeper_driver() const { return keeper_driver_; }
  uint64_t capacity_bytes() const { return capacity_bytes_; }
  const std::map<CUdeviceptr, Mapping>& mappings() const { return mappings_; }
  // Those that begin in [from, to) end with their worker.
  void Unmap(CUdeviceptr from, CUdeviceptr to);

 private:
  static CUresult Map(CUdeviceptr address, size_t bytes, size_t offset,
                      CUmemGenericAllocationHandle handle, unsigned long long flags);
  static CUresult UnmapOne(CUdeviceptr address, size_t bytes);
  static CUresult TotalMemory(size_t* bytes, CUdevice device);
  static CUresult Create(CUmemGenericAllocationHandle* handle, size_t bytes,
                         const CUmemAllocationProp* properties, unsigned long long flags);

  const uint64_t capacity_bytes_;
  ipc::DriverTable worker_driver_{};
  common::Driver keeper_driver_{};
  std::map<CUdeviceptr, Mapping> mappings_;
  uint64_t next_handle_ = 1;
};

// The keeper's process: its books are the real ones. What needs no answer lies in a queue for a
// while; a question is answered after what its teller said before it, as in keeper/server.cc.
class SimKeeper {
 public:
  using Told = std::variant<ipc::control::FreeExtent, ipc::control::DropExtent,
                            ipc::control::ChangeOwner, ipc::control::ClaimLane>;
  SimKeeper(Scene* scene, const SimDevice& device);

  void Post(uint32_t worker, const Told& told) { workers_[worker].push_back(told); }
  void Post(const ipc::control::ToKeeper& told) { daemon_.push_back(told); }
  bool HearOne();  // a message of a peer that chance chooses; false: there is none
  // What the worker has said before counts first; then what everybody has.
  keeper::Keeper* After(uint32_t worker);
  keeper::Keeper* AfterAll();
  // The same, and what the lanewayds have said, with a dead one among them: for an answer to Query.
  keeper::Keeper* AfterDaemons();
  // A new process without any books; `epoch` says that it is another one.
  void Restart();
  uint64_t epoch() const { return epoch_; }
  const keeper::Keeper& books() const { return *keeper_; }

 private:
  void Hear(uint32_t worker);
  void HearDaemon();

  Scene* const scene_;
  const SimDevice& device_;
  std::unique_ptr<keeper::Keeper> keeper_;
  std::map<uint32_t, std::deque<Told>> workers_;
  std::deque<ipc::control::ToKeeper> daemon_;
  uint64_t epoch_ = 0;
};

class WorkerExtents : public worker::ExtentSource {
 public:
  WorkerExtents(SimKeeper* keeper, uint32_t worker)
      : keeper_(*keeper), worker_(worker), epoch_(keeper->epoch()) {}
  // Begins to hand over what this worker speaks for, if the keeper is another one than before.
  void BeginHandOver();
  // Hands one extent over. False: none is left. Whatever is asked meanwhile waits for the last one.
  bool HandOverOne();

  CUresult Create(const worker::ExtentRecord& wanted, worker::Extent* extent) override;
  void Free(const worker::Extent& extent) override;
  void Drop(const worker::Extent& extent) override;
  CUresult List(const worker::Owner& owner, std::vector<worker::ExtentRecord>* extents) override;
  CUresult Import(const worker::ExtentRecord& record, worker::Extent* extent) override;
  void ChangeOwner(const worker::Extent& extent, const worker::Owner& owner, uint64_t address,
                   uint64_t range) override;
  std::shared_ptr<worker::LaneClaim> ClaimOf(uint64_t lane) override { return claims_.Of(lane); }
  void Claim(uint64_t lane) override;
  CUresult Confirm(const worker::Extent& extent) override;
  CUresult MemoryInfo(int device, uint64_t* free_bytes, uint64_t* total_bytes) override;

 private:
  struct Held {
    worker::ExtentRecord record;
    bool told = true;  // the present keeper knows of it
  };
  void FollowKeeper();
  void FinishHandOver();
  // Not answered, and lost with its keeper.
  void Tell(const SimKeeper::Told& told);

  SimKeeper& keeper_;
  const uint32_t worker_;
  uint64_t epoch_;  // of the keeper that it is connected to
  std::map<uint64_t, Held> held_;
  worker::LaneClaims claims_;
  std::deque<uint64_t> to_hand_over_;  // a lane's from its start on
};

}  // namespace protocol
