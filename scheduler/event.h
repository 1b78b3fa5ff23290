// What the scheduler is told, and what it asks for. The daemon and the simulator speak both.
//
// Order matters: actions are performed in the order in which they are returned, events are told in
// the order in which they happen. Bytes are signed so that sums and differences stay honest; times
// are microseconds of any one monotonic clock. A session has one device; ranks of one job are a
// gang. Thread safety: values.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "scheduler/place.h"

namespace scheduler {

using SessionId = uint64_t;
using LaneId = uint32_t;  // 0: none; never used again

// --- what happens --------------------------------------------------------------------------------

// What earlier runs of the same command, or the user, say about a session. Zero: not known.
struct Estimate {
  int64_t persistent_bytes = 0;
  int64_t ephemeral_bytes = 0;
  int64_t iteration_us = 0;  // of one iteration, alone on the device
  int64_t total_us = 0;      // of a whole run, alone on the device
};

struct SessionArrived {
  SessionId session = 0;
  uint64_t job = 0;
  uint32_t user = 0;
  uint32_t device = 0;
  uint32_t priority = 1;    // class: 0 is the most urgent
  int64_t weight = 100;     // within its user's share
  int64_t deadline_us = 0;  // of each piece of work, from when it is there; 0: none
  int64_t iterations = 0;   // declared; 0: not declared
  int64_t limit_bytes = 0;  // persistent and ephemeral together; 0: none
  bool fixed = false;       // its memory never leaves the device
  uint32_t gang_size = 0;   // ranks of its job that run together or not at all; < 2: alone
  Estimate estimate;
};
// The same, for a session that runs already: a new daemon learns of it from its worker.
struct SessionAdopted {
  SessionArrived arrived;
  int64_t persistent_bytes = 0;
  int64_t ephemeral_bytes = 0;
  LaneId lane = 0;
  int64_t lane_bytes = 0;
  bool granted = false;
  bool revoked = false;  // then its worker may have passed the lane on, and Switched follows
  Place place;  // on its way, as it was told before, Swapped follows; it comes back to `lane`
  Pause pause = Pause::kNone;
};
// Another worker has it now, with no more persistent memory than this: what was granted last may
// not have reached it. What it waited for it asks for again.
struct SessionMoved {
  SessionId session = 0;
  int64_t persistent_bytes = 0;
};
struct SessionEnding {  // its program is gone, its place not yet free
  SessionId session = 0;
};
struct SessionLeft {  // place, memory and lane are free
  SessionId session = 0;
};

// There is work that waits for a grant or runs. A session begins without.
struct Runnable {
  SessionId session = 0;
};
// Nothing to do. Inside an iteration it keeps its lane; at a boundary (and always for a session
// that holds no ephemeral memory) the lane may be another's.
struct Idle {
  SessionId session = 0;
  bool at_boundary = true;
};
// Since the last report: iterations that ended, and the time for which it had the device. Batched
// as the teller likes; often enough is once per slice. Time-sliced sessions report 0 iterations.
struct Progress {
  SessionId session = 0;
  int64_t iterations = 0;
  int64_t busy_us = 0;
};
// `from` came to its boundary, its work is complete on the device, and the lane is `to`'s: one of
// the published successors, or nobody's (0). Also without a Revoke, when a worker lost `from`.
struct Switched {
  LaneId lane = 0;
  SessionId from = 0;
  SessionId to = 0;
};

// Blocks the session until GrantMemory or RefuseMemory. `bytes` of persistent memory more.
struct MemoryNeeded {
  SessionId session = 0;
  int64_t bytes = 0;
  bool waits = true;  // false: where there is no room now, or others wait for it, it is refused
};
struct MemoryFreed {  // persistent, given back
  SessionId session = 0;
  int64_t bytes = 0;
};
// Blocks the session until AssignLane or RefuseMemory: `bytes` of ephemeral memory in all.
struct LaneNeeded {
  SessionId session = 0;
  int64_t bytes = 0;
};
// A ResizeLane that made a lane smaller is done: the memory is free.
struct LaneShrunk {
  LaneId lane = 0;
  int64_t bytes = 0;
};
// The keeper has so much of an adopted lane: more than its sessions need now. It counts until the
// lane shrinks. No later lane gets the number, also when no session was adopted with this lane.
struct LaneFound {
  LaneId lane = 0;
  int64_t bytes = 0;
};
// A SwapOut or SwapIn is done; not ok: everything is where it was (`text`: why).
struct Swapped {
  SessionId session = 0;
  bool out = false;
  bool ok = true;
  std::string text;
};

// A policy of this name; unknown names change nothing.
struct PolicyChanged {
  std::string name;
};
// Until it is told, a device has no bounds. Overhead: of the workers there (contexts, code).
struct CapacityChanged {
  uint32_t device = 0;
  int64_t capacity_bytes = 0;
  int64_t overhead_bytes = 0;
  int64_t reserve_bytes = 0;
};
// Its lanes are held by nobody and nothing is granted there until CapacityChanged tells of it.
struct DeviceLost {
  uint32_t device = 0;
};
struct UserChanged {
  uint32_t user = 0;
  int64_t weight = 100;
  int64_t memory_bytes = 0;   // persistent and lanes on one device; 0: no quota
  uint32_t sessions_max = 0;  // 0: no quota
};
struct LimitChanged {
  SessionId session = 0;
  int64_t limit_bytes = 0;
};
// On these terms from now on; what it has had of the device counts as it did.
struct TermsChanged {
  SessionId session = 0;
  uint32_t priority = 1;
  int64_t weight = 100;
  int64_t deadline_us = 0;
};
// Its first memory is to be on another device than was expected: it goes there, to a lane of that
// device. Ignored for who has memory, or waits for some.
struct SessionPlaced {
  SessionId session = 0;
  uint32_t device = 0;
};
struct Paused {  // stays off the device from its next boundary on
  SessionId session = 0;
  bool swap_out = false;  // and off its memory
};
struct Resumed {
  SessionId session = 0;
};
// Its memory leaves the device, and comes back with its next work. Ignored for who is paused, or
// unless MayLeave().
struct Dismissed {
  SessionId session = 0;
};
struct Timer {};  // NextTimerUs() has come

using Event =
    std::variant<SessionArrived, SessionAdopted, SessionMoved, SessionEnding, SessionLeft, Runnable,
                 Idle, Progress, Switched, MemoryNeeded, MemoryFreed, LaneNeeded, LaneShrunk,
                 LaneFound, Swapped, PolicyChanged, CapacityChanged, DeviceLost, UserChanged,
                 LimitChanged, TermsChanged, SessionPlaced, Paused, Resumed, Dismissed, Timer>;

// --- what to do ----------------------------------------------------------------------------------

struct Admit {
  SessionId session = 0;
};
struct Queue {  // not admitted yet
  SessionId session = 0;
  std::string reason;
};
struct Reject {
  SessionId session = 0;
  std::string reason;
};

// The session's ephemeral memory is this lane from now on, which is `bytes` large (a new id: make
// it). `answer`: to LaneNeeded. A session that moves to another lane than the one it held is not
// granted any more; a Grant follows when it is its turn.
struct AssignLane {
  SessionId session = 0;
  LaneId lane = 0;
  int64_t bytes = 0;
  bool answer = false;
};
// Growing: more extents at its end, for each of its sessions. Shrinking: fewer, 0: the lane is
// gone; only when nobody holds it, and to be answered by LaneShrunk.
struct ResizeLane {
  LaneId lane = 0;
  int64_t bytes = 0;
};
struct Grant {
  SessionId session = 0;
  LaneId lane = 0;
};
// At its next boundary, at once when it is idle there or blocked without live ephemeral memory.
// Answered by Switched. The lane's successors were published before. Ranks of a gang are revoked
// together and have to stop after the same iteration.
struct Revoke {
  SessionId session = 0;
  LaneId lane = 0;
};
// The sessions that hold the lane next, best first, when its revoked holder hands it over. Replaces
// the list, which counts for this holder alone: the next holder begins without. With an empty list
// the lane stays free, and the scheduler grants it again.
struct Successors {
  LaneId lane = 0;
  std::vector<SessionId> sessions;
};
// Persistent memory to or from the host, at the same addresses; the session is not granted.
// with_lane: it is inside an iteration, its live ephemeral memory goes along.
// Work that comes while it goes out begins when it is back, or when that has failed.
struct SwapOut {
  SessionId session = 0;
  bool with_lane = false;
};
struct SwapIn {
  SessionId session = 0;
  bool with_lane = false;
};
struct GrantMemory {
  SessionId session = 0;
  int64_t bytes = 0;
};
struct RefuseMemory {  // out of memory, by the session's own doing or for want of swap space
  SessionId session = 0;
  std::string reason;
  bool waited = true;  // as MemoryNeeded::waits: false is no concern of the program's
};
struct Wait {  // blocked in its request
  SessionId session = 0;
  std::string reason;
};
// Revoked long ago (Limits::iteration_max_us) and still there: move it or end it.
struct Report {
  SessionId session = 0;
  LaneId lane = 0;
  int64_t overstay_us = 0;
};

using Action = std::variant<Admit, Queue, Reject, AssignLane, ResizeLane, Grant, Revoke, Successors,
                            SwapOut, SwapIn, GrantMemory, RefuseMemory, Wait, Report>;

}  // namespace scheduler
