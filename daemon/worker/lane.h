// A lane as one worker knows it: its extents, and their mappings for the lane's members.
//
// LaneTable decides who may do what; this class makes the keeper's extents and the members'
// mappings agree. The table's files alone include this header. Thread safety: `holder` and `claim`
// from any thread; every method but the constructor, owner(), own() and TellChanged() is called
// with the lane's mutex held.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "daemon/worker/lane_claims.h"
#include "daemon/worker/lanes.h"

namespace worker {

class LaneMember::Lane {
 public:
  Lane(const Environment& environment, uint64_t id, int device, uint32_t uid,
       std::shared_ptr<LaneClaim> its_claim)
      : id(id), device(device), uid(uid), claim(std::move(its_claim)), environment_(environment) {}
  Lane(const Lane&) = delete;

  Owner owner() const { return {OwnerKind::kLane, id}; }
  // It is the only lane of one session.
  bool own() const { return ipc::control::IsOwnLane(id); }
  // The other workers hear that the lane has changed.
  void TellChanged() const;
  uint64_t bytes() const;
  // True when all of [offset, offset + bytes) lies in the lane.
  bool Contains(uint64_t offset, uint64_t bytes) const;

  // --- extents
  // Makes the list of extents equal to the keeper's, if that may have changed. `enters`: a session
  // is about to be inside.
  CUresult Refresh(bool enters = false);
  // All or nothing.
  CUresult Grow(uint64_t bytes);
  // Makes extents anew that lie in part over what the member keeps, and the lane as large as the
  // member's need. REQUIRES: no session has a live block in the lane.
  CUresult Fit(LaneMember* member);
  // The last extent goes. REQUIRES: there is one.
  void RemoveLast();
  // Replaces extents from the one with number `first` on by one, if together they are as large as
  // an extent may be, at most *bytes, and no member keeps an extent there. *bytes: how large.
  bool Merge(size_t first, uint64_t* bytes);
  // The member keeps the extents that back [offset, end), and the lane gets fresh ones in their
  // place. All or nothing.
  CUresult TakeOut(LaneMember* member, uint64_t offset, uint64_t end);

  // --- mappings
  // Maps what the member lacks.
  CUresult Map(LaneMember* member);
  // The same for every member. What can't be mapped now is tried again by LaneTable::Enter().
  void MapForAll();
  void Unmap(LaneMember* member, const Piece& part);
  // No member of this worker is left: the extents go, or stay the keeper's for other workers.
  void LetGo(bool free);

  const uint64_t id;
  const int device;
  const uint32_t uid;
  const std::shared_ptr<LaneClaim> claim;
  std::atomic<LaneMember*> holder{nullptr};
  mutable base::Mutex mutex;                   // and of its members' books
  std::vector<Piece> parts GUARDED_BY(mutex);  // without gaps; the address is the offset
  bool stale GUARDED_BY(mutex) = true;         // the keeper may know it otherwise
  std::set<LaneMember*> members GUARDED_BY(mutex);

 private:
  CUresult Create(uint64_t offset, uint64_t bytes, Piece* part) const;
  // One fresh extent for each in [offset, end) that the member does not keep yet.
  CUresult CreateFresh(LaneMember* member, uint64_t offset, uint64_t end,
                       std::vector<Piece>* fresh);
  void UnmapForAll(const Piece& part);
  void CheckOwners() const;

  const Environment& environment_;
};

}  // namespace worker
