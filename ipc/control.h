// What lanewayd, the keeper and the workers say to each other: small fixed-size messages, one per
// packet (ipc/socket.h), native byte order, because all of them are of one build on one machine.
//
//     ControlHeader | body of the type
//
//   lanewayd -> worker   Query, AttachSession + {session file, pinned file, pidfd}, DetachSession,
//                        KeeperChanged, Stop
//   worker -> lanewayd   WorkerReady, SessionRecord + {session file, pidfd}, ListEnd, Attached,
//                        SessionEnded, Poisoned, StartFailed
//   lanewayd -> keeper   Query, ReleaseWorker, Stop
//   keeper -> lanewayd   KeeperReady, UsageList, ListEnd, StartFailed
//   worker -> keeper     Register, CreateExtent, AdoptExtent + {extent}, FreeExtent, GetMemory
//   keeper -> worker     ExtentReply (+ {extent}), MemoryReply
//
// A Query is answered by Ready, then the records, then ListEnd. Nothing outside this file may read
// the bytes of a packet. Thread safety: functions without state.
#pragma once

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

namespace ipc::control {

inline constexpr uint32_t kMagic = 0x4c4e4354;  // "LNCT"
inline constexpr unsigned kDevicesMax = 8;
inline constexpr unsigned kUsagesMax = 128;  // entries of one UsageList; a long list takes several
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

// Device memory that one session holds through one worker.
struct Usage {
  uint64_t session_id = 0;
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
// then.
struct ReleaseWorker {
  uint32_t worker = 0;
};

struct Register {
  uint32_t worker = 0;
};

struct CreateExtent {
  uint64_t session_id = 0;
  uint64_t bytes = 0;
  uint32_t device = 0;
  uint32_t reserved = 0;
};

struct AdoptExtent {
  uint64_t id = 0;
  uint64_t session_id = 0;
  uint64_t bytes = 0;
  uint32_t device = 0;
  uint32_t reserved = 0;
};

struct FreeExtent {  // not answered
  uint64_t id = 0;
};

struct ExtentReply {
  uint64_t id = 0;
  uint32_t result = 0;  // CUresult
  uint32_t reserved = 0;
};

struct GetMemory {
  uint32_t device = 0;
};

struct MemoryReply {
  uint64_t free_bytes = 0;
  uint64_t total_bytes = 0;
};

// The order is the wire's type number: append only.
using Message =
    std::variant<Query, Stop, ListEnd, KeeperChanged, StartFailed, WorkerReady, SessionRecord,
                 AttachSession, Attached, SessionEnded, Poisoned, KeeperReady, UsageList,
                 ReleaseWorker, Register, CreateExtent, AdoptExtent, FreeExtent, ExtentReply,
                 GetMemory, MemoryReply, DetachSession>;

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

// Copies with truncation; always zero-terminated.
template <size_t kBytes>
void SetText(char (&to)[kBytes], std::string_view from) {
  const size_t length = from.size() < kBytes - 1 ? from.size() : kBytes - 1;
  for (size_t i = 0; i < length; ++i) to[i] = from[i];
  to[length] = '\0';
}

}  // namespace ipc::control
