// Lanes: physical memory that several sessions share, one at a time (Salus 3.2; lanes.md).
//
// A lane is a list of extents, mapped at the start of the ephemeral part of each of its sessions in
// the same order. Only the session that is inside (Enter) has live blocks in the lane, so a switch
// maps and copies nothing. The lane grows at its end. A block that outlives its iteration takes its
// extents out of the lane (Keep). The lane gets fresh extents instead, mapped for the other
// members.
//
// Invariant, asserted: an extent is never writable by two sessions' live blocks. A kept extent is
// mapped for its session alone, and a lane's extents are everyone's only while one of them is
// inside.
//
// The keeper knows a lane's extents by the lane's number and the extents' offsets, so several
// workers can have a lane. The session that is inside may change the lane's extents. While no
// session is inside, a worker that lanewayd has told to may. A worker that has changed a lane says
// so (LaneChanged) before the next session enters, and the other workers then look again
// (OnChanged). Thread safety: all methods from any thread. Methods about one member are called on
// the member's thread, or while that thread waits. This file knows no streams: the caller has to
// see to it that a session is quiet where a method requires that.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "daemon/worker/backing.h"
#include "daemon/worker/jobs.h"
#include "daemon/worker/lane_books.h"
#include "daemon/worker/session.h"
#include "ipc/calls/limits.h"

namespace worker {

// Small enough that a block which outlives its iteration takes little along, large enough that a
// lane has few mappings.
inline constexpr uint64_t kLaneExtentBytesMax = 32 * ipc::limits::MiB;

// Stands for the books of a member in what the compiler checks: a thread that holds the mutex of
// the member's lane holds them. Without a lane they are the session's thread's alone.
class CAPABILITY("the books of a lane's member") BooksGuard {
 public:
  // REQUIRES: this thread holds the mutex of the lane. Does nothing at run time.
  void AssertHeld() const ASSERT_CAPABILITY(this) {}
};

// A session's place in at most one lane.
class LaneMember {
 public:
  LaneMember(uint64_t session_id, uint32_t uid, CUdeviceptr ephemeral_base,
             std::shared_ptr<JobMemory> job)
      : session_id_(session_id), uid_(uid), base_(ephemeral_base), job_(std::move(job)) {}
  LaneMember(const LaneMember&) = delete;

  uint64_t lane() const { return lane_id_; }  // 0: none
  int device() const { return device_; }
  uint64_t reserved_bytes() const { return reserved_bytes_; }
  // It keeps an extent in which no block lives: Reclaim() would give memory back. Its thread's, and
  // that thread alone changes the answer.
  bool has_spare() const NO_THREAD_SAFETY_ANALYSIS { return books_.has_spare(); }
  // For status: the bytes of the lane that are mapped for the member, and those of kept extents.
  uint64_t mapped_bytes() const { return mapped_bytes_.load(std::memory_order_relaxed); }

 private:
  friend class LaneTable;
  class Lane;  // lane.h
  void CountMapped() REQUIRES(guard_) { mapped_bytes_.store(books_.MappedBytes()); }

  const uint64_t session_id_;
  const uint32_t uid_;
  const CUdeviceptr base_;
  const std::shared_ptr<JobMemory> job_;
  uint64_t lane_id_ = 0;
  std::shared_ptr<Lane> lane_;
  int device_ = 0;
  uint64_t reserved_bytes_ = 0;
  std::atomic<uint64_t> mapped_bytes_{0};
  BooksGuard guard_;
  LaneBooks books_ GUARDED_BY(guard_);
};

class LaneTable {
 public:
  explicit LaneTable(const Environment* environment) : environment_(*environment) {}
  LaneTable(const LaneTable&) = delete;

  // Maps the lane for the member; one that this worker does not know yet is looked up at the
  // keeper. CUDA_ERROR_NOT_PERMITTED when it is another user's, CUDA_ERROR_INVALID_VALUE when it is
  // on another device. REQUIRES: the member is in no lane.
  CUresult Join(LaneMember* member, uint64_t lane, int device);
  // Unmaps the lane. Kept extents stay the session's. A session's own lane is given back when its
  // last member leaves; lanewayd ends every other lane (ReleaseOwner). `moves`: the session goes to
  // another worker, and its own lane stays. REQUIRES: the session is quiet. A
  // Pinned session ends, moves, or has saved its blocks in the lane (Arena::SwapOut).
  void Leave(LaneMember* member, bool moves = false);

  // The member's need is `bytes` in all: the lane is at least that large when it is inside. Never
  // shrinks. CUDA_ERROR_OUT_OF_MEMORY when the job's limit or the keeper forbids it.
  CUresult Reserve(LaneMember* member, uint64_t bytes);
  // The same for a member that comes back with the need that it had before. The job's limit is not
  // asked: a limit that came later refuses growth, but takes no memory away.
  // CUDA_ERROR_OUT_OF_MEMORY when the need exceeds the addresses of a lane.
  // REQUIRES: the member is not inside.
  CUresult ReserveAgain(LaneMember* member, uint64_t bytes);
  // Gives extents at the lane's end back until the lane is no larger than `bytes`. The lane may
  // have no members in this worker. False, and no change, while a session is inside.
  bool Shrink(uint64_t lane, uint64_t bytes);
  // Replaces runs of small extents by large ones, as many as `budget_bytes` allow. What lay in them
  // is gone. Returns the bytes that were remapped. REQUIRES: no session is inside.
  uint64_t Coalesce(uint64_t lane, uint64_t budget_bytes);
  // Another worker has changed the lane (0: perhaps any): its mappings are brought up to date now,
  // or, when a member is inside, before the next one enters.
  void OnChanged(uint64_t lane);

  // The block outlives its iteration: what backs it becomes the session's.
  // CUDA_ERROR_ILLEGAL_STATE: the member is not inside, and what lies in the lane is another's.
  // CUDA_ERROR_OUT_OF_MEMORY: there is nothing for the lane in its place; the member then keeps the
  // lane (Pinned) until Drop(address).
  CUresult Keep(LaneMember* member, CUdeviceptr address, uint64_t bytes);
  // How much memory Keep would ask the keeper for.
  uint64_t FreshBytesFor(LaneMember* member, CUdeviceptr address, uint64_t bytes);
  // Keep without fresh memory: the member keeps the lane. CUDA_ERROR_ILLEGAL_STATE as there.
  CUresult Pin(LaneMember* member, CUdeviceptr address, uint64_t bytes);
  // The block is gone. False: no block of Keep. The block's extents stay where they are, for blocks
  // of the iteration may lie beside the block, or already in its place.
  bool Drop(LaneMember* member, CUdeviceptr address);
  // Gives up what the member keeps for no block any more, and maps the lane there again. When that
  // fails, the member leaves the lane (Exit). Returns the bytes. REQUIRES: no block of an iteration
  // lives, and the device has finished.
  uint64_t Reclaim(LaneMember* member);
  // Blocks of the member live in the lane itself, so no other session may enter.
  bool Pinned(LaneMember* member);

  // The member may use as much of the lane as it has reserved from now on. CUDA_ERROR_NOT_READY
  // while another is inside, or blocks of another live in the lane: try again. An error of the
  // driver when it can't be mapped; CUDA_ERROR_OUT_OF_MEMORY when extents had to be made anew and
  // the keeper has no room now: then the lane is smaller, and the member not inside.
  CUresult Enter(LaneMember* member);
  // From a driver's callback, too: calls no driver function and takes no lock.
  void Exit(LaneMember* member);
  bool Inside(const LaneMember* member) const;

  // --- what the session keeps, for swapping and moving
  std::vector<Piece> Kept(LaneMember* member);
  // Other memory at the same place; without an id while it is swapped out.
  void SetKept(LaneMember* member, CUdeviceptr address, const Extent& extent);
  // Adds one that is mapped already: another worker kept it before.
  void AddKept(LaneMember* member, int device, const Piece& piece);
  // Out of the books; the caller unmaps them.
  void ForgetKept(LaneMember* member);
  // What the member has mapped of the lane itself.
  std::vector<Piece> Mapped(LaneMember* member);

  struct View {
    std::vector<Piece> parts;  // address: the offset
    size_t members = 0;
    uint64_t holder = 0;  // session
  };
  View Look(uint64_t lane);

 private:
  using Lane = LaneMember::Lane;
  // Holds the mutex of the member's lane; nothing when it has none.
  class SCOPED_CAPABILITY MemberLock {
   public:
    explicit MemberLock(LaneMember* member) ACQUIRE(member->guard_);
    ~MemberLock() RELEASE();
    MemberLock(const MemberLock&) = delete;

   private:
    base::Mutex* const mutex_;
  };

  std::shared_ptr<Lane> Find(uint64_t lane);
  void ShrinkUnused(uint64_t id, uint64_t bytes);
  // Both are called with the mutex of the member's lane held.
  bool InLane(const LaneMember& member, CUdeviceptr address, uint64_t bytes) const;
  bool MayKeep(const LaneMember& member) const;

  const Environment& environment_;
  base::Mutex mutex_;
  std::map<uint64_t, std::weak_ptr<Lane>> lanes_ GUARDED_BY(mutex_);
};

}  // namespace worker
