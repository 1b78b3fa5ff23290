// One direction of a session's messages, whatever carries it: rings (ipc/ring.h) or ZeroMQ
// (ipc/zmq_channel.h). Thread safety: one thread at a time per object; owners bring their own lock.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "ipc/message.h"

namespace ipc {

class ChunkReceiver;

class Sender {
 public:
  virtual ~Sender() = default;
  // Room for one message of up to `bytes` (<= kMessageBytesMax), 8-byte aligned. Waits up to
  // timeout_us for the peer to make room and returns an empty span when it has not: ask whether the
  // peer lives, then retry.
  virtual std::span<std::byte> Reserve(size_t bytes, int64_t timeout_us) = 0;
  // Sends the first `bytes` of the reserved room; the first word must be MessageHeader::bytes ==
  // bytes.
  virtual void Commit(size_t bytes) = 0;
};

class Receiver {
 public:
  virtual ~Receiver() = default;
  // The next message, copied out of the peer's reach, header included; the span stays valid until
  // the next call. Spins spin_us, then sleeps until timeout_us in all. Empty: none came. Its length
  // is checked against its header and the limits; nothing else is: the bytes are untrusted.
  // `broken()` is set when the peer wrote a length that no message can have; nothing more can be
  // received then.
  virtual std::span<const std::byte> NextUntrusted(int64_t spin_us, int64_t timeout_us) = 0;
  // The next message, which stays the next one and, to the peer, untaken: what a worker looks at
  // that may not take every message now. The bytes are those that NextUntrusted hands out then,
  // whatever the peer writes meanwhile: a message is copied once. Waits, and is valid, as that.
  virtual std::span<const std::byte> PeekUntrusted(int64_t spin_us, int64_t timeout_us) = 0;
  // True when a message waits. Looks at none, so it may be asked while one is being served.
  virtual bool Pending() = 0;
  // Waits end with an empty result while `flag` is not 0. The thread that sets it also rings the
  // receiver's doorbell; a channel without a doorbell looks at the flag when its timeout is over.
  virtual void SetInterrupt(const std::atomic<uint32_t>* flag) {}
  virtual bool broken() const = 0;
  // Where the last message that was handed out is part of a chunk (ipc/chunks), and not its end:
  // the chunk. To the peer, no message of the chunk is taken yet.
  virtual ChunkReceiver* midway() { return nullptr; }
};

struct Channel {
  std::unique_ptr<Sender> sender;
  std::unique_ptr<Receiver> receiver;
};

}  // namespace ipc
