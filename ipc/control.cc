#include "ipc/control.h"

#include <cstring>
#include <type_traits>

namespace ipc::control {
namespace {

// --- what must hold for a body to be believed, per type; most are any bytes ----------------------

template <size_t kBytes>
void Terminate(char (&text)[kBytes]) {
  text[kBytes - 1] = '\0';
}

template <class Body>
bool Sanitize(Body* body) {
  return true;
}

bool Sanitize(StartFailed* body) {
  Terminate(body->sentence);
  return true;
}

bool Sanitize(WorkerReady* body) { return body->device_count <= kDevicesMax; }

bool Sanitize(SessionRecord* body) {
  Terminate(body->program);
  return body->slot < limits::kSlots && body->device < kDevicesMax &&
         SanitizeTerms(&body->job.scheduling) && scheduler::Valid(body->place) &&
         body->pause <= scheduler::Pause::kEvicted && body->turn <= Turn::kDraining &&
         (body->transport == Transport::kRing || body->transport == Transport::kZmq);
}

bool Sanitize(AttachSession* body) { return Sanitize(&body->session); }

bool Sanitize(Attached* body) {
  Terminate(body->zmq_endpoint);
  Terminate(body->sentence);
  return true;
}

bool Sanitize(Poisoned* body) {
  Terminate(body->text);
  return true;
}

bool Sanitize(KeeperReady* body) {
  for (DeviceRecord& device : body->devices) Terminate(device.name);
  return body->device_count <= kDevicesMax &&
         (body->kind == DeviceKind::kSoft || body->kind == DeviceKind::kCuda);
}

bool Sanitize(Owner* owner) {
  return owner->kind == OwnerKind::kSession || owner->kind == OwnerKind::kLane;
}

bool Sanitize(UsageList* body) {
  if (body->count > kUsagesMax) return false;
  for (uint32_t i = 0; i < body->count; ++i) {
    if (body->usages[i].device >= kDevicesMax || !Sanitize(&body->usages[i].owner)) return false;
  }
  return true;
}

// Only a refusal may name no lane.
bool Sanitize(AssignLane* body) {
  return body->device < kDevicesMax && (body->lane != 0 || body->result != 0);
}
bool Sanitize(MemoryNeeded* body) { return body->device < kDevicesMax; }
bool Sanitize(MemoryIfFree* body) { return body->device < kDevicesMax; }
bool Sanitize(LaneNeeded* body) { return body->device < kDevicesMax; }
bool Sanitize(Successors* body) { return body->count <= kSuccessorsMax; }
bool Sanitize(GateReport* body) { return body->event <= GateEvent::kStalled; }
bool Sanitize(Swapped* body) {
  Terminate(body->sentence);
  return true;
}

bool Sanitize(ExtentRecord* extent) {
  return extent->device < kDevicesMax && Sanitize(&extent->owner);
}
bool Sanitize(CreateExtent* body) { return Sanitize(&body->extent); }
bool Sanitize(AdoptExtent* body) { return Sanitize(&body->extent); }
bool Sanitize(ListExtents* body) { return Sanitize(&body->owner); }
bool Sanitize(ChangeOwner* body) { return Sanitize(&body->owner); }
bool Sanitize(ReleaseOwner* body) { return Sanitize(&body->owner); }
bool Sanitize(CountOutside* body) { return body->device < kDevicesMax && Sanitize(&body->owner); }
bool Sanitize(ExtentList* body) {
  if (body->count > kExtentsMax) return false;
  for (uint32_t i = 0; i < body->count; ++i) {
    if (!Sanitize(&body->extents[i])) return false;
  }
  return true;
}
bool Sanitize(GetMemory* body) { return body->device < kDevicesMax; }

template <class Body>
std::optional<Body> DecodeBody(std::span<const std::byte> bytes) {
  static_assert(std::is_trivially_copyable_v<Body>);
  static_assert(std::is_empty_v<Body> || std::has_unique_object_representations_v<Body>,
                "padding would carry bytes of the sender's memory");
  if (bytes.size() != (std::is_empty_v<Body> ? 0 : sizeof(Body))) return std::nullopt;
  Body body;
  if (!bytes.empty()) std::memcpy(&body, bytes.data(), bytes.size());
  if (!Sanitize(&body)) return std::nullopt;
  return body;
}

// The body of that type, where the direction has it.
template <class... Bodies>
std::optional<std::variant<Bodies...>> DecodeType(uint32_t type, std::span<const std::byte> bytes,
                                                  const std::variant<Bodies...>*) {
  std::optional<std::variant<Bodies...>> message;
  (void)((kTypeOf<Bodies> == type && (message = DecodeBody<Bodies>(bytes), true)) || ...);
  return message;
}

}  // namespace

std::vector<std::byte> EncodeBody(uint32_t type, std::span<const std::byte> body) {
  ControlHeader header;
  header.type = type;
  header.bytes = static_cast<uint32_t>(sizeof header + body.size());
  std::vector<std::byte> bytes(header.bytes);
  std::memcpy(bytes.data(), &header, sizeof header);
  if (!body.empty()) std::memcpy(bytes.data() + sizeof header, body.data(), body.size());
  return bytes;
}

template <class Direction>
std::optional<Direction> DecodeControlUntrusted(std::span<const std::byte> bytes) {
  ControlHeader header;
  if (bytes.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kMagic || header.protocol_version != kProtocolVersion ||
      header.bytes != bytes.size()) {
    return std::nullopt;
  }
  return DecodeType(header.type, bytes.subspan(sizeof header),
                    static_cast<const Direction*>(nullptr));
}

template std::optional<DaemonToWorker> DecodeControlUntrusted(std::span<const std::byte> bytes);
template std::optional<WorkerToDaemon> DecodeControlUntrusted(std::span<const std::byte> bytes);
template std::optional<DaemonToProgram> DecodeControlUntrusted(std::span<const std::byte> bytes);
template std::optional<ProgramToDaemon> DecodeControlUntrusted(std::span<const std::byte> bytes);
template std::optional<ToKeeper> DecodeControlUntrusted(std::span<const std::byte> bytes);
template std::optional<WorkerToKeeper> DecodeControlUntrusted(std::span<const std::byte> bytes);
template std::optional<KeeperToDaemon> DecodeControlUntrusted(std::span<const std::byte> bytes);
template std::optional<KeeperToWorker> DecodeControlUntrusted(std::span<const std::byte> bytes);

}  // namespace ipc::control
