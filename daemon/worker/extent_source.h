// Physical memory as the worker sees it: the keeper's extents, imported into this process.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "daemon/worker/lane_claims.h"
#include "ipc/control.h"

namespace worker {

using ipc::control::ExtentRecord;
using ipc::control::Owner;
using ipc::control::OwnerKind;

struct Extent {
  uint64_t id = 0;     // the keeper's name
  uint64_t bytes = 0;  // a power of two, limits::kExtentBytesMin..kExtentBytesMax
  CUmemGenericAllocationHandle handle = 0;
  bool clear = false;  // another tenant may have written it: zero it before use
};

// Thread safety: all methods from any session thread.
class ExtentSource {
 public:
  virtual ~ExtentSource() = default;
  // The keeper chooses the id. CUDA_ERROR_OUT_OF_MEMORY when capacity is exhausted. Waits, bounded,
  // while a lost keeper is replaced.
  virtual CUresult Create(const ExtentRecord& wanted, Extent* extent) = 0;
  // Releases the handle of an extent that the caller has unmapped everywhere, and tells the keeper.
  // The owner gives the extent up, or keeps it, and only this worker has it no more.
  virtual void Free(const Extent& extent) = 0;
  virtual void Drop(const Extent& extent) = 0;
  // What the owner has, by address; made by this worker or by another.
  virtual CUresult List(const Owner& owner, std::vector<ExtentRecord>* extents) = 0;
  // REQUIRES: this worker does not have it.
  virtual CUresult Import(const ExtentRecord& record, Extent* extent) = 0;
  virtual void ChangeOwner(const Extent& extent, const Owner& owner, uint64_t address,
                           uint64_t range) = 0;
  // The worker's claim to the lane, which ends when another keeper comes (lane_claims.h). A source
  // without an override has one keeper for ever.
  virtual std::shared_ptr<LaneClaim> ClaimOf(uint64_t /*lane*/) {
    return std::make_shared<LaneClaim>();
  }
  // A session is to enter the lane, for the first time since the keeper came (LaneClaim::Take).
  virtual void Claim(uint64_t /*lane*/) {}
  // The keeper is to know that this worker has the listed extent, too: perhaps only an earlier one
  // knew it. CUDA_ERROR_INVALID_VALUE when it was given up since.
  virtual CUresult Confirm(const Extent& /*extent*/) { return CUDA_SUCCESS; }
  // Free and total bytes of the device, over all tenants.
  virtual CUresult MemoryInfo(int device, uint64_t* free_bytes, uint64_t* total_bytes) = 0;
};

}  // namespace worker
