// What lanewayd, the keeper, the workers and programs in in-process mode say to each other: small
// fixed-size messages, one per packet (ipc/socket.h), native byte order, because all of them are of
// one build on one machine.
//
//     ControlHeader | body of the type
//
// Each direction is a variant of its own (the end of this file), with its own decoder: a message of
// another direction does not decode. Descriptors travel with some:
//
//   lanewayd -> worker   AttachSession + {session file, pinned file, pidfd, swap file}
//   worker -> lanewayd   SessionRecord + {session file, pidfd, pinned file, swap file}
//   worker -> keeper     AdoptExtent + {extent}
//   keeper -> worker     ExtentReply (+ {extent})
//
// A program in in-process mode is for lanewayd the worker of one session, and says less. A Query is
// answered by Ready, then the records, then ListEnd. Nothing outside this file may read the bytes
// of a packet. Thread safety: functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "ipc/calls/limits.h"
#include "ipc/control_extents.h"
#include "ipc/hello.h"
#include "ipc/job.h"
#include "ipc/session_file.h"
#include "ipc/socket.h"
#include "ipc/text_field.h"
#include "ipc/turn.h"
#include "scheduler/place.h"

namespace ipc::control {

inline constexpr uint32_t kMagic = 0x4c4e4354;  // "LNCT"
inline constexpr unsigned kDevicesMax = kJobDevicesMax;
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

// How one session is told to a worker and, by Query, told back by it to a new daemon. Sent alone,
// it tells that the job's terms, the pause or the device of one that runs have changed.
struct SessionRecord {
  uint64_t session_id = 0;
  JobTerms job;
  uint32_t slot = 0;
  int32_t pid = 0;
  uint32_t uid = 0;
  Transport transport = Transport::kRing;
  uint64_t pinned_bytes = 0;
  uint64_t lane = 0;        // 0: none yet
  uint64_t lane_bytes = 0;  // reserved in it
  uint64_t persistent_bytes = 0;
  Turn turn = Turn::kOutside;  // of its lane
  uint32_t wants = 0;          // it has work
  scheduler::Pause pause = scheduler::Pause::kNone;
  scheduler::Place place;   // on the way, Swapped will tell how it ended
  uint32_t generation = 0;  // other than 0: it has run in another worker before
  uint32_t contained = 0;   // 1: it gets a worker of its own
  uint32_t device = 0;      // on which it is counted and has its lane
  Tables tables;            // the calls that its client makes
  char program[kNameBytes] = {};
};

struct AttachSession {
  SessionRecord session;
};
// Its client gave up before it was welcomed, or lanewayd ends it; answered by SessionEnded.
struct DetachSession {
  uint64_t session_id = 0;
};

struct Attached {
  uint64_t session_id = 0;
  uint64_t persistent_bytes = 0;  // that it has from an earlier worker
  uint32_t result = 0;            // CUresult
  char zmq_endpoint[limits::kPathBytesMax + 1] = {};
  char sentence[kSentenceBytes] = {};
};

// The session gave back everything it held; its slot may be used again.
struct SessionEnded {
  uint64_t session_id = 0;
};

struct Poisoned {
  uint64_t session_id = 0;  // the culprit; 0: it can't be told
  uint64_t code = 0;        // CUresult
  char text[kLossTextBytes] = {};
};

// A device as its driver describes it, and how much of its memory the keeper has given out.
struct DeviceRecord {
  uint64_t capacity_bytes = 0;
  uint64_t used_bytes = 0;
  char name[kNameBytes] = {};
  uint8_t uuid[16] = {};
  char pci_bus_id[16] = {};  // DDDD:BB:DD.F
  uint32_t major = 0;        // of the compute capability
  uint32_t minor = 0;
  uint32_t multiprocessors = 0;
  uint32_t unused = 0;
};

struct KeeperReady {
  int32_t pid = 0;
  DeviceKind kind = DeviceKind::kSoft;
  uint64_t device_count = 0;
  DeviceRecord devices[kDevicesMax];
};

// Lets a session go at its next quiet point: everything of it is forgotten here, nothing is freed;
// answered by SessionReleased, or SessionEnded when its program ended first.
struct ReleaseSession {
  uint64_t session_id = 0;
};
struct SessionReleased {
  uint64_t session_id = 0;
};

// --- lanes and grants. At most one session of a lane is granted at a time. The daemon publishes
// which sessions may follow; a worker hands a lane over by itself and reports it
// (daemon/worker/turn_table.h).

inline constexpr unsigned kSuccessorsMax = 16;  // the next ones are published as these have run

// The session's lane, at least this large: answers LaneNeeded, or moves the session to another lane
// at its next boundary. A result other than 0 refuses: the need can never be met.
struct AssignLane {
  uint64_t session_id = 0;
  uint64_t lane = 0;  // 0, for none, only in a refusal
  uint64_t bytes = 0;
  uint32_t device = 0;
  uint32_t result = 0;  // CUresult
  uint64_t answer = 0;  // 1: to LaneNeeded
};

// No more than so many bytes of the lane stay, which nobody holds. Answered by LaneShrunk, each
// time it is told. Larger it becomes where a session enters that needs more.
struct ResizeLane {
  uint64_t lane = 0;
  uint64_t bytes = 0;
};
struct LaneShrunk {
  uint64_t lane = 0;
  uint64_t bytes = 0;
};

// A worker has changed which extents the lane has: the others look again. 0: any lane.
struct LaneChanged {
  uint64_t lane = 0;
};
// How far a worker may decide about a lane by itself. A lane that was never mentioned is contended,
// and self-service.
struct LanePolicy {
  uint64_t lane = 0;
  // 0: there is no session but the one in the lane, which need not report short idle periods.
  uint32_t contended = 1;
  // 0: sessions of several workers use the lane; without a daemon it stays with the worker that has
  // it.
  uint32_t self_service = 1;
};

struct Grant {
  uint64_t session_id = 0;
  uint64_t lane = 0;
};

// The session hands its lane over at its next boundary.
struct Revoke {
  uint64_t session_id = 0;
};

// The sessions that get the lane next, in order; replaces what was said before. Sessions of another
// worker are not listed: the worker reports the lane free, and lanewayd grants it.
struct Successors {
  uint64_t lane = 0;
  uint64_t count = 0;
  uint64_t session_ids[kSuccessorsMax] = {};
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
  uint64_t device = 0;
};
// The same, but it does not wait: it is refused where there is no room now.
struct MemoryIfFree {
  uint64_t session_id = 0;
  uint64_t bytes = 0;
  uint64_t device = 0;
};
// Try again (0), or fail the call with this CUresult.
struct MemoryAnswer {
  uint64_t session_id = 0;
  uint64_t result = 0;
};
struct MemoryFreed {
  uint64_t session_id = 0;
  uint64_t bytes = 0;
};
struct LaneNeeded {
  uint64_t session_id = 0;
  uint64_t bytes = 0;
  uint64_t device = 0;
};

// `from` has left the lane (0: nobody held it) and `to` runs in it now (0: it is free).
struct Switched {
  uint64_t lane = 0;
  uint64_t from = 0;
  uint64_t to = 0;
  int64_t at_us = 0;  // CLOCK_MONOTONIC
};

enum class GateEvent : uint64_t {
  kRunnable = 0,  // it has work
  kIdle = 1,      // it has none, and is at a boundary or holds no ephemeral memory
  kStalled = 2,   // it has none, in the middle of an iteration
};

struct GateReport {
  uint64_t session_id = 0;
  GateEvent event = GateEvent::kRunnable;
};

// --- the wire

// The place in this list is the wire's type number, whichever way a message goes.
using Types =
    std::tuple<Query, Stop, ListEnd, KeeperChanged, StartFailed, WorkerReady, SessionRecord,
               AttachSession, Attached, SessionEnded, Poisoned, KeeperReady, UsageList,
               ReleaseWorker, Register, CreateExtent, AdoptExtent, FreeExtent, ExtentReply,
               GetMemory, MemoryReply, DetachSession, AssignLane, ResizeLane, LaneShrunk, Grant,
               Revoke, Successors, Swap, Swapped, MemoryNeeded, MemoryAnswer, MemoryFreed,
               LaneNeeded, Switched, GateReport, DropExtent, ImportExtent, ListExtents, ExtentList,
               ChangeOwner, ReleaseOwner, ReleaseSession, SessionReleased, CountOutside,
               LaneChanged, LanePolicy, ClaimLane, MemoryIfFree>;

template <class Body, class... Bodies>
constexpr uint32_t PlaceIn(const std::tuple<Bodies...>*) {
  static_assert((std::is_same_v<Body, Bodies> + ... + 0) == 1, "in Types, once");
  uint32_t place = 0;
  (void)((std::is_same_v<Body, Bodies> || (++place, false)) || ...);
  return place;
}
template <class Body>
inline constexpr uint32_t kTypeOf = PlaceIn<Body>(static_cast<const Types*>(nullptr));

struct ControlHeader {
  uint32_t magic = kMagic;
  uint32_t protocol_version = kProtocolVersion;
  uint32_t type = 0;
  uint32_t bytes = 0;  // header and body
};

// --- directions

using DaemonToWorker =
    std::variant<Query, Stop, KeeperChanged, AttachSession, DetachSession, ReleaseSession,
                 SessionRecord, AssignLane, ResizeLane, Grant, Revoke, Successors, Swap,
                 MemoryAnswer, LaneChanged, LanePolicy>;
using WorkerToDaemon =
    std::variant<WorkerReady, ListEnd, StartFailed, SessionRecord, Attached, SessionEnded,
                 SessionReleased, Poisoned, Switched, GateReport, LaneNeeded, LaneShrunk,
                 LaneChanged, MemoryNeeded, MemoryIfFree, MemoryFreed, Swapped>;

// A program in in-process mode.
using DaemonToProgram = std::variant<Grant, Revoke, MemoryAnswer, MemoryReply>;
using ProgramToDaemon = std::variant<Switched, GateReport, MemoryNeeded, MemoryFreed, GetMemory>;

// On one socket file the keeper hears lanewayd and workers. A connection is lanewayd's until it
// says Register: from then on it is a worker's.
using ToKeeper = std::variant<Query, Stop, ReleaseWorker, ReleaseOwner, CountOutside, Register>;
using WorkerToKeeper = std::variant<CreateExtent, AdoptExtent, FreeExtent, DropExtent, ImportExtent,
                                    ListExtents, ChangeOwner, GetMemory, ClaimLane>;
using KeeperToDaemon = std::variant<KeeperReady, UsageList, ListEnd, StartFailed>;
using KeeperToWorker = std::variant<ExtentReply, ExtentList, ListEnd, MemoryReply>;

// The only message of a keeper or worker that can't start: of both their directions.
using ChildToDaemon = std::variant<StartFailed>;

// The same message in another direction; nothing when it does not exist there.
template <class To, class From>
std::optional<To> Redirected(const From& message) {
  return std::visit(
      [](const auto& body) -> std::optional<To> {
        if constexpr (std::is_constructible_v<To, decltype(body)>) return To(body);
        return std::nullopt;
      },
      message);
}

// --- packets

// The packet of a body of that type; an empty body has no bytes.
std::vector<std::byte> EncodeBody(uint32_t type, std::span<const std::byte> body);

template <class Direction>
std::vector<std::byte> Encode(const Direction& message) {
  return std::visit(
      [](const auto& body) {
        using Body = std::decay_t<decltype(body)>;
        const std::span<const std::byte> bytes = std::as_bytes(std::span(&body, 1));
        return EncodeBody(kTypeOf<Body>, std::is_empty_v<Body> ? bytes.first(0) : bytes);
      },
      message);
}

// Nothing unless the bytes are exactly one message of this direction and version, with counts,
// enums and lengths in range. Every text in what comes back is zero-terminated. For the directions
// above, but ChildToDaemon.
template <class Direction>
std::optional<Direction> DecodeControlUntrusted(std::span<const std::byte> bytes);

template <class Direction>
absl::Status Send(int socket, const std::type_identity_t<Direction>& message,
                  std::span<const int> fds = {}) {
  return SendPacket(socket, Encode<Direction>(message), fds);
}

template <class Direction>
struct Received {
  Direction message;
  std::vector<UniqueFd> fds;
};

// ReceivePacket's errors; InvalidArgument for bytes that are no message of this direction.
template <class Direction>
absl::StatusOr<Received<Direction>> Receive(int socket, int64_t timeout_us) {
  absl::StatusOr<Packet> packet = ReceivePacket(socket, timeout_us);
  if (!packet.ok()) return packet.status();
  const std::optional<Direction> message = DecodeControlUntrusted<Direction>(packet->bytes);
  if (!message.has_value()) {
    return absl::InvalidArgumentError("a control packet that no peer of this version sends here");
  }
  return Received<Direction>{*message, std::move(packet->fds)};
}

}  // namespace ipc::control
