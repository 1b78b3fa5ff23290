// A session's device memory: fixed addresses backed by the keeper's extents.
//
// The arena is the device part of the session's slot (limits.h), reserved once; the same addresses
// are reserved without access in the client, so a device pointer means the same on both sides. The
// client cuts blocks out of the ranges that Map backs in the persistent part and a lane (lanes.h)
// in the ephemeral part; the worker itself places only library workspaces, in a part of its own. A
// range is given back only after the work that could touch it is complete: the caller says when.
//
// Persistent memory can go to the host and come back to the same addresses (SwapOut, SwapIn), and
// another worker can map all of it again (Detach there, Restore here): extents are the session's,
// not the worker's. Thread safety: one session's thread; bytes() from any.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/worker/address_space.h"
#include "daemon/worker/backing.h"
#include "daemon/worker/jobs.h"
#include "daemon/worker/lanes.h"
#include "daemon/worker/session.h"
#include "daemon/worker/shared_ranges.h"
#include "daemon/worker/swap.h"
#include "ipc/calls/limits.h"

namespace worker {

// Whose memory it is.
struct Tenant {
  uint64_t session_id = 0;
  uint32_t uid = 0;
  std::shared_ptr<JobMemory> job;
};

// Of offsets in the arena: the part where the worker itself places ranges.
inline bool IsWorkersPart(uint64_t offset) { return offset >= ipc::limits::kWorkerOffset; }

class Arena {
 public:
  // `swap_file` takes the memory on its way to the host. With an invalid descriptor the arena makes
  // a file.
  Arena(const Environment& environment, Tenant tenant, uint32_t slot, ipc::UniqueFd swap_file = {});
  ~Arena();  // REQUIRES: nothing on the device uses it any more
  Arena(const Arena&) = delete;

  // Reserves the slot's addresses. False: the driver gave others; `error` says so.
  bool Reserve(std::string* error);
  // Maps again what another worker left of this session, at the same addresses with the same bytes;
  // what it left in the host's memory stays there, library workspaces go. REQUIRES: Reserve, and
  // nothing else yet.
  CUresult Restore();
  // Another worker goes on: unmaps everything and leaves it to the session.
  void Detach();
  // Frees everything.
  void Clear();

  // Backs a range of the persistent part. CUDA_ERROR_INVALID_VALUE when it is no such range or
  // overlaps what is backed; CUDA_ERROR_OUT_OF_MEMORY when the job's limit or the keeper forbids
  // it.
  CUresult Map(int device, CUdeviceptr address, uint64_t bytes);
  // A range in the worker's own part.
  CUresult Place(int device, uint64_t bytes, CUdeviceptr* address);
  // Gives a range of Map, Place or MapShared back. CUDA_ERROR_INVALID_VALUE when none starts there.
  // `counted`: how much less is the session's.
  CUresult Free(CUdeviceptr address, uint64_t* counted = nullptr);
  // Puts a range of Map at other addresses of the persistent part, with its bytes.
  // CUDA_ERROR_INVALID_VALUE when none starts there, or the addresses are no such range, or are
  // taken; an error of the driver leaves the range where it was. REQUIRES: the device does not use
  // the range.
  CUresult Move(CUdeviceptr from, CUdeviceptr to);
  // Names the range of Map that the address lies in, for other sessions, and tells where it begins.
  // CUDA_ERROR_INVALID_VALUE when none is there.
  CUresult Share(CUdeviceptr address, ipc::ShareName* name, CUdeviceptr* base);
  // Maps another session's range at a range of addresses as Map takes them. It counts as that
  // session's. Free ends the mapping. Errors of SharedRanges::Join.
  CUresult MapShared(int device, const ipc::ShareName& name, CUdeviceptr address);
  // A range is shared: the arena stays where it is.
  bool shares() const;
  // Of the range that starts there; 0 when none does.
  uint64_t RangeBytes(CUdeviceptr address) const;
  // True when [address, + bytes) lies inside the arena. Unmapped parts fault as on hardware.
  bool Contains(CUdeviceptr address, uint64_t bytes) const;

  // The session's ephemeral need is `bytes` in all. A session without a lane gets a lane for itself
  // alone. CUDA_ERROR_NOT_SUPPORTED on another device than the lane's. Otherwise as Map.
  CUresult ReserveLane(int device, uint64_t bytes);
  LaneMember* lane_member() { return &lane_member_; }
  LaneTable* lanes() const { return environment_.lanes; }

  // After CUDA_ERROR_OUT_OF_MEMORY: whether `bytes` more would be fine if others had less, so that
  // waiting helps. False when the job's limit or the device itself is too small.
  bool OthersHold(int device, uint64_t bytes) const;
  // The job's total is the device's size or the job's limit; free is the part of the total that is
  // left now.
  // `unseen`: memory of the session that the keeper's device does not know of.
  CUresult MemoryInfo(int device, uint64_t* free_bytes, uint64_t* total_bytes,
                      uint64_t unseen = 0) const;

  // Moves ranges of the persistent part and what the session keeps of lanes to host memory, and
  // gives the extents up; with_lane: what lies in its lane is saved, too. Ranges of Place go
  // without their bytes. All or nothing; the error is a sentence. REQUIRES: the session is quiet,
  // and until SwapIn it runs nothing.
  absl::Status SwapOut(bool with_lane = false);
  // CUDA_ERROR_OUT_OF_MEMORY when the keeper has no room: then it is swapped out still. REQUIRES:
  // with_lane before: the session is inside its lane.
  CUresult SwapIn();
  bool swapped() const { return swap_file_.holds(); }
  uint64_t swapped_bytes() const { return swap_file_.bytes(); }

  CUdeviceptr ephemeral_base() const { return base_ + ipc::limits::kEphemeralOffset; }
  uint64_t bytes() const {
    return bytes_.load(std::memory_order_relaxed) + lane_member_.mapped_bytes();
  }

 private:
  struct Range {
    int device;
    std::vector<Piece> pieces;
    std::shared_ptr<SharedRange> shared = nullptr;
    bool is_guest = false;  // the range is another session's
  };
  using Ranges = std::map<CUdeviceptr, Range>;
  // A range of the worker's own part while the session is swapped out.
  struct Scratch {
    int device;
    uint64_t bytes;
  };
  // SwapRecord::kind
  enum Kind : uint32_t { kRange, kKept, kLane };

  // True when Map may back this range: it is whole, inside the persistent part, and vacant.
  bool IsPlace(CUdeviceptr address, uint64_t bytes) const;
  CUresult AddRange(int device, CUdeviceptr address, uint64_t bytes);
  void RemoveRange(Ranges::iterator range);
  ExtentRecord RecordAt(int device, CUdeviceptr address) const;
  std::vector<common::SwapRecord> WhatGoes(bool with_lane);
  absl::Status Save(std::vector<common::SwapRecord> records);
  CUresult BackSwapped(Ranges* backed);
  void FreeScratch(std::map<CUdeviceptr, Scratch>::iterator scratch);
  // What of the swap file counts as the job's by this arena; the rest, by the lane table.
  void CountSwapped(void (JobMemory::*count)(int device, uint64_t bytes));
  CUresult RestoreExtents(std::vector<ExtentRecord>* records, std::vector<Piece>* pieces);

  const Environment& environment_;
  const Tenant tenant_;
  const CUdeviceptr base_;
  bool reserved_ = false;
  AddressSpace own_addresses_;  // of the worker's part
  Ranges ranges_;
  LaneMember lane_member_;
  std::map<CUdeviceptr, Scratch> scratch_;
  SwapFile swap_file_;
  std::atomic<uint64_t> bytes_{0};
};

}  // namespace worker
