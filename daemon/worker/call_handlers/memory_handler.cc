#include "daemon/worker/call_handlers/memory_handler.h"

#include "daemon/worker/gate.h"
#include "daemon/worker/poll_device.h"
#include "ipc/calls/limits.h"
#include "ipc/session_file.h"

namespace worker {
namespace {

constexpr int64_t kMoveWaitUsMax = 1'000'000;  // work may wait for the program itself

}  // namespace

CUresult MemoryHandler::ArenaMap(CUdeviceptr address, size_t bytes) {
  if (bytes > ipc::limits::kPersistentBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  return memory_.MapWithRoom(bytes, [&] { return held_.arena.Map(call_.device, address, bytes); });
}

CUresult MemoryHandler::ArenaUnmap(CUdeviceptr address) {
  held_.frees.Poll();
  if (held_.arena.RangeBytes(address) == 0 || address >= held_.arena.ephemeral_base()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!held_.addresses.GiveUp(address, held_.arena.RangeBytes(address)))
    return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = held_.frees.Free(held_.streams.All(), [this, address] {
    memory_.FreeRange(address);
    PublishShares();
  });
  if (result != CUDA_SUCCESS) held_.addresses.Gone(address);
  return result;
}

CUresult MemoryHandler::ArenaCreate(CUdeviceptr address, size_t bytes) {
  const CUresult result = ArenaMap(address, bytes);
  if (result == CUDA_SUCCESS) held_.addresses.Seal(address, bytes);
  return result;
}

// A sealed range is in no work of the session. Any other may be, and the driver unmaps at once.
CUresult MemoryHandler::ArenaMove(CUdeviceptr from, CUdeviceptr to) {
  held_.frees.Poll();
  if (held_.arena.RangeBytes(from) == 0 || from >= held_.arena.ephemeral_base())
    return CUDA_ERROR_INVALID_VALUE;
  if (!held_.addresses.IsSealed(from)) {
    if (held_.addresses.IsShut(from, 1)) return CUDA_ERROR_INVALID_VALUE;
    const int64_t deadline_us = NowUs() + kMoveWaitUsMax;
    PollDevice([&] { return held_.StreamsIdle() || !life_.Alive() || NowUs() >= deadline_us; });
    if (!held_.StreamsIdle()) return CUDA_ERROR_NOT_READY;
  }
  const CUresult result = held_.arena.Move(from, to);
  if (result == CUDA_SUCCESS) held_.addresses.Gone(from);
  return result;
}

CUresult MemoryHandler::ShareRange(CUdeviceptr address, ipc::ShareName* name, CUdeviceptr* base) {
  if (held_.addresses.IsShut(address, 1)) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = held_.arena.Share(address, name, base);
  PublishShares();
  return result;
}

CUresult MemoryHandler::MapShared(const ipc::ShareName* name, CUdeviceptr address) {
  held_.frees.Poll();
  const CUresult result = held_.arena.MapShared(call_.device, *name, address);
  PublishShares();
  return result;
}

// A client that clears the bit loses its own mappings.
void MemoryHandler::PublishShares() { life_.SetObstacle(ipc::kSharedMemory, held_.arena.shares()); }

CUresult MemoryHandler::LaneReserve(size_t bytes) {
  return bytes == 0 ? lane_.GiveLaneBack() : lane_.GrowInLane(bytes);
}

// Memory that becomes the session's own is asked for as any other; refused, it keeps the lane. What
// it has given back is not its to keep.
CUresult MemoryHandler::LaneKeep(CUdeviceptr address, size_t bytes) {
  LaneTable* const lanes = held_.arena.lanes();
  LaneMember* const member = held_.arena.lane_member();
  if (!lane_.UsesLane() && !life_.Replays()) return CUDA_ERROR_ILLEGAL_STATE;
  const uint64_t fresh = lanes->FreshBytesFor(member, address, bytes);
  if (fresh != 0) {
    const CUresult asked = memory_.AskForMemory(fresh);
    if (asked != CUDA_SUCCESS) {
      (void)lanes->Pin(member, address, bytes);
      return asked;
    }
  }
  const CUresult kept = lanes->Keep(member, address, bytes);
  if (kept != CUDA_SUCCESS && fresh != 0) memory_.GiveMemoryBack(fresh);
  return kept;
}

CUresult MemoryHandler::LaneDrop(CUdeviceptr address) {
  return held_.arena.lanes()->Drop(held_.arena.lane_member(), address) ? CUDA_SUCCESS
                                                                       : CUDA_ERROR_INVALID_VALUE;
}

// What was freed counts as free: the program's own cuMemFree would have waited for the work before.
CUresult MemoryHandler::MemInfo(size_t* free, size_t* total) {
  constexpr int64_t kFreeWaitUsMax = 1'000'000;  // work may wait for the program itself
  const int64_t deadline_us = NowUs() + kFreeWaitUsMax;
  PollDevice([&] { return held_.frees.Poll() || !life_.Alive() || NowUs() >= deadline_us; });
  uint64_t free_bytes = 0, total_bytes = 0;
  // A software device counts the memory of each process by itself; a GPU counts all of them.
  const uint64_t unseen = held_.environment.on_processors ? held_.arrays.bytes() : 0;
  const CUresult result = held_.arena.MemoryInfo(call_.device, &free_bytes, &total_bytes, unseen);
  *free = free_bytes;
  *total = total_bytes;
  return result;
}

CUresult MemoryHandler::PinnedAlloc(CUdeviceptr address, size_t bytes, unsigned flags) {
  return held_.pinned.Map(address, bytes, flags);
}

CUresult MemoryHandler::PinnedFree(CUdeviceptr address) {
  held_.addresses.LostPinned();
  return held_.pinned.Unmap(address);
}

}  // namespace worker
