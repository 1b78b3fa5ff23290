// What lanes.cc and lane_keep.cc know of a lane; nobody else includes this. Thread safety: as said.
#pragma once

#include <atomic>
#include <mutex>
#include <set>
#include <vector>

#include "daemon/worker/lanes.h"

namespace worker {

struct LaneMember::Lane {
  Lane(uint64_t id, int device, uint32_t uid) : id(id), device(device), uid(uid) {}
  Owner owner() const { return {OwnerKind::kLane, id}; }
  bool own() const { return ipc::control::IsOwnLane(id); }
  uint64_t bytes() const {
    return parts.empty() ? 0 : parts.back().address + parts.back().extent.bytes;
  }

  const uint64_t id;
  const int device;
  const uint32_t uid;
  std::atomic<LaneMember*> holder{nullptr};
  std::mutex mutex;          // of all below, and of its members' maps
  std::vector<Piece> parts;  // without gaps; the address is the offset
  bool stale = true;         // the keeper may know it otherwise
  std::set<LaneMember*> members;
};

}  // namespace worker
