// A session's device memory: fixed addresses backed by the keeper's extents.
//
// The arena is the device part of the session's slot (limits.h), reserved once; the same addresses
// are reserved without access in the client, so a device pointer means the same on both sides.
// Blocks up to half an extent are cut from 2 MiB extents at 512-byte steps; larger ones own an
// extent each. An address is handed out again only after the work that could touch it is complete:
// the caller says when. Thread safety: one session's thread; bytes() from any.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>

#include "daemon/worker/address_space.h"
#include "daemon/worker/session.h"

namespace worker {

class Arena {
 public:
  Arena(const Environment& environment, uint64_t session_id, uint32_t slot);
  ~Arena();  // REQUIRES: nothing on the device uses it any more
  Arena(const Arena&) = delete;

  // Reserves the slot's addresses. False: the driver gave others; `error` says so.
  bool Reserve(std::string* error);

  // CUDA_ERROR_OUT_OF_MEMORY when the keeper has no room or the arena no addresses.
  CUresult Allocate(int device, uint64_t bytes, CUdeviceptr* address);
  // CUDA_ERROR_INVALID_VALUE when no live block starts there.
  CUresult Free(CUdeviceptr address);
  bool IsBlock(CUdeviceptr address) const { return blocks_.count(address) != 0; }
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
  CUresult MapExtent(int device, uint64_t bytes, bool shared, CUdeviceptr* address);
  void UnmapExtent(CUdeviceptr address);

  const Environment& environment_;
  const uint64_t session_id_;
  const CUdeviceptr base_;
  bool reserved_ = false;
  AddressSpace addresses_;  // of whole extents
  std::map<CUdeviceptr, Mapping> mappings_;
  std::map<CUdeviceptr, Block> blocks_;  // live
  std::atomic<uint64_t> bytes_{0};
};

}  // namespace worker
