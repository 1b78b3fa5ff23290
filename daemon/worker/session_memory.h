// What the handlers of calls need of the session's memory: room for persistent memory, its lane,
// and whether it may use the device now. A handler sees only the interfaces that it needs. Thread
// safety: the session's thread.
//
// Calls that need room wait inside until there is some, and meanwhile do what lanewayd orders.
// Other sessions' memory is never a reason for an error.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstdint>
#include <functional>

namespace worker {

class PersistentMemory {
 public:
  virtual ~PersistentMemory() = default;
  // Asks lanewayd for room, on the device of the call being served, and waits until there is some.
  // The session then has it until GiveMemoryBack. CUDA_ERROR_OUT_OF_MEMORY: a limit is in the way,
  // or the session ends.
  virtual CUresult AskForMemory(uint64_t bytes) = 0;
  // AskForMemory, then `map` until it finds the room. What `map` returns, given back on an error.
  virtual CUresult MapWithRoom(uint64_t bytes, const std::function<CUresult()>& map) = 0;
  // The same where there is room at this moment: neither this session nor another one waits or
  // makes room. CUDA_ERROR_OUT_OF_MEMORY: there is none.
  virtual CUresult MapIfFree(uint64_t bytes, const std::function<CUresult()>& map) = 0;
  virtual void GiveMemoryBack(uint64_t bytes) = 0;
  // Frees a range of the arena whose work is complete, and gives its memory back.
  virtual void FreeRange(CUdeviceptr address) = 0;
};

class LaneUse {
 public:
  virtual ~LaneUse() = default;
  // True when the session has reserved a part of a lane.
  virtual bool UsesLane() const = 0;
  // On success the session's part of its lane is at least so large.
  virtual CUresult GrowInLane(uint64_t bytes) = 0;
  // CUDA_ERROR_NOT_READY while blocks that outlive their iteration keep the lane.
  virtual CUresult GiveLaneBack() = 0;
};

class DeviceTurn {
 public:
  virtual ~DeviceTurn() = default;
  // True when the session may use the device now: its turn was granted and not taken back, and the
  // session has not given it up.
  virtual bool IsItsTurn() const = 0;
};

}  // namespace worker
