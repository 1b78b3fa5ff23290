// Serves the calls that allocate and free memory (ipc::MemoryCalls): ranges of the arena, the part
// of a lane, pinned host memory. Thread safety: one session's thread.
#pragma once

#include "ipc/calls/vendor.h"

#include "daemon/worker/call_context.h"
#include "daemon/worker/holdings.h"
#include "daemon/worker/session_life.h"
#include "daemon/worker/session_memory.h"
#include "ipc/door.h"

namespace worker {

class MemoryHandler final : public ipc::MemoryCalls {
 public:
  // All outlive this object.
  MemoryHandler(Holdings* held, CallContext* call, SessionLife* life, PersistentMemory* memory,
                LaneUse* lane)
      : held_(*held), call_(*call), life_(*life), memory_(*memory), lane_(*lane) {}
  MemoryHandler(const MemoryHandler&) = delete;

  CUresult MemInfo(size_t* free, size_t* total) override;
  CUresult PinnedAlloc(CUdeviceptr address, size_t bytes, unsigned flags) override;
  CUresult PinnedFree(CUdeviceptr address) override;
  CUresult ArenaMap(CUdeviceptr address, size_t bytes) override;
  CUresult ArenaUnmap(CUdeviceptr address) override;
  CUresult ArenaCreate(CUdeviceptr address, size_t bytes) override;
  CUresult ArenaMove(CUdeviceptr from, CUdeviceptr to) override;
  CUresult ShareRange(CUdeviceptr address, ipc::ShareName* name, CUdeviceptr* base) override;
  CUresult MapShared(const ipc::ShareName* name, CUdeviceptr address) override;
  CUresult LaneReserve(size_t bytes) override;
  CUresult LaneKeep(CUdeviceptr address, size_t bytes) override;
  CUresult LaneDrop(CUdeviceptr address) override;

 private:
  // lanewayd reads the bit, and moves no session that shares memory.
  void PublishShares();

  Holdings& held_;
  const CallContext& call_;
  SessionLife& life_;
  PersistentMemory& memory_;
  LaneUse& lane_;
};

}  // namespace worker
