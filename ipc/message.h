// One call message: a fixed header, then the call's encoded parameters (ipc/codec.h).
//
// The same bytes travel over rings and over ZeroMQ. Requests go client to worker, replies the other
// way with the request's number; replies may come out of order. Messages are padded to 8 bytes
// inside a ring, and `bytes` does not count the padding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "ipc/calls/limits.h"

namespace ipc {

// Changes with any incompatible change of hello, session file or message header. The call tables
// have their own hash (ipc/calls.h).
inline constexpr uint32_t kProtocolVersion = 5;

enum MessageFlags : uint16_t {
  kWantsReply = 1,  // request: the sender waits for a reply with this request number
  kIsReply = 2,
  kRepeatsChunk = 4,  // request: stands for a run of messages (ipc/chunks/chunk_format.h)
};

struct MessageHeader {
  uint32_t bytes = 0;    // header and parameters
  uint16_t op = 0;       // ipc::Op; Untrusted until dispatched
  uint16_t flags = 0;    // MessageFlags
  uint32_t request = 0;  // copied into the reply
  uint32_t thread = 0;   // client's small number for the calling thread
  uint32_t context = 0;  // client's small number for the current context, 0: none
  uint32_t record = 0;   // its number in a trace in detail (ipc/work_records.h), else 0
};
static_assert(sizeof(MessageHeader) == 24 && std::is_trivially_copyable_v<MessageHeader>);

// Of MessageHeader::context: the call of a library goes into the capture that GraphCapture began.
inline constexpr uint32_t kIntoCapture = 1u << 31;

// What a message of so many bytes takes where messages lie one after the other.
constexpr size_t PaddedBytes(size_t bytes) { return (bytes + 7) & ~size_t{7}; }

// The header of the message that begins at `at`. REQUIRES: so many bytes are there.
inline MessageHeader HeaderAt(std::span<const std::byte> messages, size_t at = 0) {
  MessageHeader header;
  std::memcpy(&header, messages.data() + at, sizeof header);
  return header;
}

inline constexpr size_t kBodyBytesMax = limits::kMessageBytesMax - sizeof(MessageHeader);

}  // namespace ipc
