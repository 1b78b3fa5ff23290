// What lanewayd, the keeper and the workers say to each other: small fixed-size messages, one per
// packet (ipc/socket.h), native byte order, because all of them are of one build on one machine.
//
//     ControlHeader | body of the type
//
//   lanewayd -> worker   Query, AttachSession + {session file, pinned file, pidfd, swap file},
//                        DetachSession, KeeperChanged, ReleaseSession, Stop; AssignLane,
//                        ResizeLane, Grant, Revoke, Successors, SetPaused, Swap, MemoryAnswer
//   worker -> lanewayd   WorkerReady, SessionRecord + {session file, pidfd, pinned file, swap
//                        file}, ListEnd, Attached, SessionEnded, SessionReleased, Poisoned,
//                        StartFailed; Switched, GateReport, LaneNeeded, LaneShrunk, MemoryNeeded,
//                        MemoryFreed, Swapped
//   lanewayd -> keeper   Query, ReleaseWorker, ReleaseOwner, CountOutside, Stop
//   keeper -> lanewayd   KeeperReady, UsageList, ListEnd, StartFailed
//   worker -> keeper     Register, CreateExtent, AdoptExtent + {extent}, FreeExtent, DropExtent,
//                        ImportExtent, ListExtents, ChangeOwner, GetMemory
//   keeper -> worker     ExtentReply (+ {extent}), ExtentList, ListEnd, MemoryReply
// A program in in-process mode is for lanewayd the worker of one session, and may say GetMemory.
//
// A Query is answered by Ready, then the records, then ListEnd. Nothing outside this file may read
// the bytes of a packet. Thread safety: functions without state.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "ipc/calls/limits.h"
#include "ipc/hello.h"
#include "ipc/session_file.h"
#include "ipc/socket.h"
#include "ipc/text_field.h"

namespace ipc::control {

inline constexpr uint32_t kMagic = 0x4c4e4354;  // "LNCT"
inline constexpr unsigned kDevicesMax = 8;
inline constexpr unsigned kUsagesMax = 128;  // entries of one UsageList; a long list takes several
inline constexpr unsigned kExtentsMax = 64;  // entries of one ExtentList
inline constexpr size_t kSentenceBytes = 512;
inline constexpr size_t kNameBytes = 128;

enum class DeviceKind : uint32_t { kSoft = 0, kCuda = 1 };

struct Query {};
struct Stop {};
struct ListEnd {};
struct KeeperChanged {};

struct StartFailed {
  char sentence[kSentenceBytes] = {};
};

struct WorkerReady {
  uint32_t worker = 0;
  int32_t pid = 0;
  uint32_t device_count = 0;
  uint32_t own = 0;  // 1: it serves one session that shares it with nobody
};

// How one session is told to a worker and, by Query, told back by it to a new daemon.
struct SessionRecord {
  uint64_t session_id = 0;
  uint64_t job_id = 0;
  uint32_t slot = 0;
  int32_t pid = 0;
  uint32_t uid = 0;
  Transport transport = Transport::kRing;
  uint64_t pinned_bytes = 0;
  uint64_t lane = 0;        // 0: none yet
  uint64_t lane_bytes = 0;  // reserved in it
  uint64_t persistent_bytes = 0;
  uint32_t granted = 0;  // it may run now
  uint32_t wants = 0;    // it has work
  uint32_t paused = 0;
  uint32_t swapped = 0;             // its persistent memory is in the host's
  uint64_t memory_limit_bytes = 0;  // of the job, on each device; 0: none
  uint32_t generation = 0;          // other than 0: it has run in another worker before
  uint32_t contained = 0;           // 1: it gets a worker of its own
  Tables tables;                    // the calls that its client makes
  char program[kNameBytes] = {};
};

struct AttachSession {
  SessionRecord session;
};
// Its client gave up before it was welcomed; answered by SessionEnded.
struct DetachSession {
  uint64_t session_id = 0;
};

struct Attached {
  uint64_t session_id = 0;
  uint32_t result = 0;  // CUresult
  char zmq_endpoint[limits::kPathBytesMax + 1] = {};
  char sentence[kSentenceBytes] = {};
};

// The session gave back everything it held; its slot may be used again.
struct SessionEnded {
  uint64_t session_id = 0;
};

struct Poisoned {
  uint64_t session_id = 0;  // the culprit; 0: it can't be told
  uint32_t code = 0;        // CUresult
  char text[kLossTextBytes] = {};
};

struct DeviceRecord {
  uint64_t capacity_bytes = 0;
  uint64_t used_bytes = 0;
  char name[kNameBytes] = {};
};

struct KeeperReady {
  int32_t pid = 0;
  DeviceKind kind = DeviceKind::kSoft;
  uint32_t device_count = 0;
  DeviceRecord devices[kDevicesMax];
};

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
// The session whose end is the owner's; 0: a lane of several.
constexpr uint64_t SessionOf(const Owner& owner) {
  if (owner.kind == OwnerKind::kSession) return owner.id;
  return (owner.id & kOwnLane) != 0 ? owner.id & ~kOwnLane : 0;
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
  uint32_t count = 0;
  uint32_t reserved = 0;
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
  uint32_t count = 0;
  uint32_t reserved = 0;
  ExtentRecord extents[kExtentsMax];
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
  uint32_t device = 0;
  uint32_t reserved = 0;
};

struct ExtentReply {
  uint64_t id = 0;
  uint32_t result = 0;  // CUresult
  uint32_t clear = 0;   // 1: another tenant may have written it; zero it before use
};
struct GetMemory {
  uint32_t device = 0;
};

// Lets a session go at its next quiet point: everything of it is forgotten here, nothing is freed;
// answered by SessionReleased, or SessionEnded when its program ended first.
struct ReleaseSession {
  uint64_t session_id = 0;
};
struct SessionReleased {
  uint64_t session_id = 0;
};
struct MemoryReply {
  uint64_t free_bytes = 0;
  uint64_t total_bytes = 0;
};

// --- lanes and grants. At most one session of a lane is granted at a time. The daemon publishes
// who may follow; a worker hands a lane over by itself and reports it (daemon/worker/gate.h).

inline constexpr unsigned kSuccessorsMax = 16;  // the next ones are published as these have run

// The session's lane, at least this large: answers LaneNeeded, or moves the session to another lane
// at its next boundary. A result other than 0 refuses: the need can never be met.
struct AssignLane {
  uint64_t session_id = 0;
  uint64_t lane = 0;
  uint64_t bytes = 0;
  uint32_t device = 0;
  uint32_t result = 0;  // CUresult
  uint32_t answer = 0;  // 1: to LaneNeeded
  uint32_t reserved = 0;
};

// More extents at the lane's end, or fewer (answered by LaneShrunk; then nobody holds it).
struct ResizeLane {
  uint64_t lane = 0;
  uint64_t bytes = 0;
};
struct LaneShrunk {
  uint64_t lane = 0;
  uint64_t bytes = 0;
};

struct Grant {
  uint64_t session_id = 0;
  uint64_t lane = 0;
};

// The session hands its lane over at its next boundary.
struct Revoke {
  uint64_t session_id = 0;
};

// Who gets the lane next, in order; replaces what was said before. Sessions of another worker are
// not listed: the worker reports the lane free and the daemon grants.
struct Successors {
  uint64_t lane = 0;
  uint32_t count = 0;
  uint32_t reserved = 0;
  uint64_t session_ids[kSuccessorsMax] = {};
};

// A paused session stops at its next boundary and is granted nothing.
struct SetPaused {
  uint64_t session_id = 0;
  uint32_t paused = 0;
  uint32_t reserved = 0;
};

// Persistent memory to the host and back; done while the session is not granted and quiet.
struct Swap {
  uint64_t session_id = 0;
  uint32_t out = 0;        // 1: to the host; 0: to the device
  uint32_t with_lane = 0;  // it is inside an iteration: what is live in its lane goes along
};
struct Swapped {
  uint64_t session_id = 0;
  uint32_t out = 0;
  uint32_t result = 0;  // CUresult; other than 0: everything is where it was
  char sentence[kNameBytes] = {};
};

// A session waits inside the worker until there is memory.
struct MemoryNeeded {
  uint64_t session_id = 0;
  uint64_t bytes = 0;
  uint32_t device = 0;
  uint32_t reserved = 0;
};
// Try again (0), or fail the call with this CUresult.
struct MemoryAnswer {
  uint64_t session_id = 0;
  uint32_t result = 0;
  uint32_t reserved = 0;
};
struct MemoryFreed {
  uint64_t session_id = 0;
  uint64_t bytes = 0;
};
struct LaneNeeded {
  uint64_t session_id = 0;
  uint64_t bytes = 0;
  uint32_t device = 0;
  uint32_t reserved = 0;
};

// `from` has left the lane (0: nobody held it) and `to` runs in it now (0: it is free).
struct Switched {
  uint64_t lane = 0;
  uint64_t from = 0;
  uint64_t to = 0;
  int64_t at_us = 0;  // CLOCK_MONOTONIC
};

enum class GateEvent : uint32_t {
  kRunnable = 0,  // it has work
  kIdle = 1,      // it has none, and is at a boundary or holds no ephemeral memory
  kStalled = 2,   // it has none, in the middle of an iteration
};

struct GateReport {
  uint64_t session_id = 0;
  GateEvent event = GateEvent::kRunnable;
  uint32_t reserved = 0;
};

// The order is the wire's type number: append only.
using Message =
    std::variant<Query, Stop, ListEnd, KeeperChanged, StartFailed, WorkerReady, SessionRecord,
                 AttachSession, Attached, SessionEnded, Poisoned, KeeperReady, UsageList,
                 ReleaseWorker, Register, CreateExtent, AdoptExtent, FreeExtent, ExtentReply,
                 GetMemory, MemoryReply, DetachSession, AssignLane, ResizeLane, LaneShrunk, Grant,
                 Revoke, Successors, SetPaused, Swap, Swapped, MemoryNeeded, MemoryAnswer,
                 MemoryFreed, LaneNeeded, Switched, GateReport, DropExtent, ImportExtent,
                 ListExtents, ExtentList, ChangeOwner, ReleaseOwner, ReleaseSession,
                 SessionReleased, CountOutside>;

struct ControlHeader {
  uint32_t magic = kMagic;
  uint32_t protocol_version = kProtocolVersion;
  uint32_t type = 0;
  uint32_t bytes = 0;  // header and body
};

std::vector<std::byte> Encode(const Message& message);

// Nothing unless the bytes are exactly one message of this version with counts, enums and lengths
// in range. Every text in what comes back is zero-terminated.
std::optional<Message> DecodeControlUntrusted(std::span<const std::byte> bytes);

absl::Status Send(int socket, const Message& message, std::span<const int> fds = {});

struct Received {
  Message message;
  std::vector<UniqueFd> fds;
};

// ReceivePacket's errors; InvalidArgument for bytes that are no control message.
absl::StatusOr<Received> Receive(int socket, int64_t timeout_us);

}  // namespace ipc::control
