// A lane as lanes.cc and lane_keep.cc know it; no other file includes this. Thread safety: `holder`
// and `claim` from any thread, the rest under `mutex`.
#pragma once

#include <atomic>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "daemon/worker/lane_claims.h"
#include "daemon/worker/lanes.h"

namespace worker {

struct LaneMember::Lane {
  Lane(uint64_t id, int device, uint32_t uid, std::shared_ptr<LaneClaim> claim)
      : id(id), device(device), uid(uid), claim(std::move(claim)) {}
  Owner owner() const { return {OwnerKind::kLane, id}; }
  bool own() const { return ipc::control::IsOwnLane(id); }
  uint64_t bytes() const REQUIRES(mutex) {
    return parts.empty() ? 0 : parts.back().address + parts.back().extent.bytes;
  }

  const uint64_t id;
  const int device;
  const uint32_t uid;
  const std::shared_ptr<LaneClaim> claim;
  std::atomic<LaneMember*> holder{nullptr};
  mutable base::Mutex mutex;                   // and of its members' books
  std::vector<Piece> parts GUARDED_BY(mutex);  // without gaps; the address is the offset
  bool stale GUARDED_BY(mutex) = true;         // the keeper may know it otherwise
  std::set<LaneMember*> members GUARDED_BY(mutex);
};

}  // namespace worker
