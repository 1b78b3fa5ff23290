// What workers and lanewayd say to the keeper, and it to them, about memory: a part of
// ipc/control.h, which alone is included. Thread safety: data.
#pragma once

#include <compare>
#include <cstdint>

namespace ipc::control {

inline constexpr unsigned kUsagesMax = 128;  // entries of one UsageList; a long list takes several
inline constexpr unsigned kExtentsMax = 64;  // entries of one ExtentList

// Whose an extent is. It lives until its owner gives it up or ends; workers come and go.
enum class OwnerKind : uint64_t { kSession = 0, kLane = 1 };

struct Owner {
  OwnerKind kind = OwnerKind::kSession;
  uint64_t id = 0;
  auto operator<=>(const Owner&) const = default;
};

// A session that nobody has put into a lane has one of its own, with this number.
inline constexpr uint64_t kOwnLane = uint64_t{1} << 63;
constexpr uint64_t OwnLaneOf(uint64_t session_id) { return kOwnLane | session_id; }
constexpr bool IsOwnLane(uint64_t lane) { return (lane & kOwnLane) != 0; }
// The session whose end is the owner's; 0: a lane of several.
constexpr uint64_t SessionOf(const Owner& owner) {
  if (owner.kind == OwnerKind::kSession) return owner.id;
  return IsOwnLane(owner.id) ? owner.id & ~kOwnLane : 0;
}

// One extent in the keeper's books.
struct ExtentRecord {
  uint64_t id = 0;  // the keeper's name
  Owner owner;
  uint64_t bytes = 0;    // a power of two, limits::kExtentBytesMin..kExtentBytesMax
  uint64_t address = 0;  // a session's: where in its arena; a lane's: offset from its start
  uint64_t range = 0;    // a session's: where the range begins that it is a part of
  uint32_t device = 0;
  uint32_t uid = 0;  // the tenant
};

// Device memory of one owner that one worker has imported. What several have is counted once: the
// entries of the others say 0 bytes. worker 0: nobody has it, its worker is gone.
struct Usage {
  Owner owner;
  uint64_t bytes = 0;
  uint32_t worker = 0;
  uint32_t device = 0;
};

struct UsageList {
  uint64_t count = 0;
  Usage usages[kUsagesMax];
};

// Sent only when the worker's pidfd says that it is gone: its mappings keep the memory busy until
// then. Its owners' extents stay.
struct ReleaseWorker {
  uint32_t worker = 0;
};

struct Register {
  uint32_t worker = 0;
};

struct CreateExtent {
  ExtentRecord extent;  // the keeper chooses the id
};

// A worker hands over to a new keeper what an earlier one made.
struct AdoptExtent {
  ExtentRecord extent;
};
struct FreeExtent {  // unmapped here, and given up by its owner; not answered
  uint64_t id = 0;
};
struct DropExtent {  // unmapped here, its owner keeps it; not answered
  uint64_t id = 0;
};

// Answered by ExtentReply with the descriptor.
struct ImportExtent {
  uint64_t id = 0;
};

// Answered by ExtentLists, by address, and ListEnd.
struct ListExtents {
  Owner owner;
};
struct ExtentList {
  uint64_t count = 0;
  ExtentRecord extents[kExtentsMax];
};

// A session of this worker is to enter the lane, and is the worker's first since the keeper came.
// From now on the keeper takes no extent of the lane from a worker that had a session inside before
// (AdoptExtent). Not answered.
struct ClaimLane {
  uint64_t lane = 0;
};

// A lane's extent becomes a session's, or the other way. Not answered.
struct ChangeOwner {
  uint64_t id = 0;
  Owner owner;
  uint64_t address = 0;
  uint64_t range = 0;
};

// The session or lane has ended: its extents go as soon as no living worker has them.
struct ReleaseOwner {
  Owner owner;
};

// What a program that keeps its own context has in all: counted, never created here. The owner's
// end takes it along (ReleaseOwner).
struct CountOutside {
  Owner owner;
  uint64_t bytes = 0;
  uint64_t device = 0;
};

struct ExtentReply {
  uint64_t id = 0;
  uint32_t result = 0;  // CUresult
  uint32_t clear = 0;   // 1: another tenant may have written it; zero it before use
};
struct GetMemory {
  uint32_t device = 0;
};

struct MemoryReply {
  uint64_t free_bytes = 0;
  uint64_t total_bytes = 0;
};

}  // namespace ipc::control
