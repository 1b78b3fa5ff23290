// A session's device memory: fixed addresses backed by the keeper's extents.
//
// The arena is the device part of the session's slot (limits.h), reserved once; the same addresses
// are reserved without access in the client, so a device pointer means the same on both sides.
// The client cuts blocks out of the ranges that Map backs in the persistent part and GrowLane in
// the ephemeral part; the worker itself places only library workspaces, in a part of its own. A
// range is given back only after the work that could touch it is complete: the caller says when.
// (Allocate cuts blocks for clients that do not: up to half an extent from 2 MiB extents at
// 512-byte steps.) Thread safety: one session's thread; bytes() from any.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/worker/address_space.h"
#include "daemon/worker/backing.h"
#include "daemon/worker/session.h"
#include "ipc/calls/limits.h"

namespace worker {

class Arena {
 public:
  Arena(const Environment& environment, uint64_t session_id, uint32_t slot);
  ~Arena();  // REQUIRES: nothing on the device uses it any more
  Arena(const Arena&) = delete;

  // Reserves the slot's addresses. False: the driver gave others; `error` says so.
  bool Reserve(std::string* error);

  // Backs a range of the persistent part. CUDA_ERROR_INVALID_VALUE when it is no such range or
  // overlaps what is backed, CUDA_ERROR_OUT_OF_MEMORY when the keeper has no room.
  CUresult Map(int device, CUdeviceptr address, uint64_t bytes);
  // Backs the ephemeral part up to `bytes` from its start. CUDA_ERROR_NOT_SUPPORTED on another
  // device than before.
  CUresult GrowLane(int device, uint64_t bytes);
  void ReleaseLane();
  // A range in the worker's own part.
  CUresult Place(int device, uint64_t bytes, CUdeviceptr* address);
  // CUDA_ERROR_OUT_OF_MEMORY when the keeper has no room or the arena no addresses.
  CUresult Allocate(int device, uint64_t bytes, CUdeviceptr* address);
  // Gives a range of Map or Place, or a block, back. CUDA_ERROR_INVALID_VALUE when none starts
  // there.
  CUresult Free(CUdeviceptr address);
  bool IsBlock(CUdeviceptr address) const { return blocks_.count(address) != 0; }
  bool IsRange(CUdeviceptr address) const { return ranges_.count(address) != 0; }
  uint64_t persistent_base() const { return base_; }
  uint64_t ephemeral_base() const { return base_ + ipc::limits::kEphemeralOffset; }
  // Whether [address, address + bytes) lies inside the arena. Unmapped parts fault as on hardware.
  bool Contains(CUdeviceptr address, uint64_t bytes) const;
  // Frees every block.
  void Clear();

  uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  struct Mapping {  // one extent at its address
    Extent extent;
    int device;
    bool shared;  // cut into small blocks
    AddressSpace inside{0, 0};
  };
  struct Block {
    uint64_t bytes;
    CUdeviceptr mapping;
  };
  using Ranges = std::map<CUdeviceptr, std::vector<Piece>>;
  // Whether nothing is backed in the range.
  bool IsVacant(CUdeviceptr address, uint64_t bytes) const;
  CUresult AddRange(int device, CUdeviceptr address, uint64_t bytes);
  void RemoveRange(Ranges::iterator range);
  CUresult MapBlocks(int device, uint64_t bytes, bool shared, CUdeviceptr* address);
  void UnmapExtent(CUdeviceptr address);

  const Environment& environment_;
  const uint64_t session_id_;
  const CUdeviceptr base_;
  bool reserved_ = false;
  const Backing backing_;
  AddressSpace addresses_;      // of extents with blocks
  AddressSpace own_addresses_;  // of the worker's part
  Ranges ranges_;
  std::vector<Piece> lane_;
  int lane_device_ = -1;
  std::map<CUdeviceptr, Mapping> mappings_;
  std::map<CUdeviceptr, Block> blocks_;  // live
  std::atomic<uint64_t> bytes_{0};
};

}  // namespace worker
