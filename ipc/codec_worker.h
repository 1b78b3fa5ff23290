// The worker's codec: decodes an untrusted request, asks the session at every name and address,
// makes the call, encodes the reply. Bytes from a client are checked here and nowhere else; what a
// callee gets are plain C values. Pointers to what the client sent point into the request itself.
//
// Thread safety: as the Session's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "ipc/codec.h"
#include "ipc/codec_client.h"
#include "ipc/door.h"

namespace ipc {

// One decoded parameter: the C value that the callee gets, in its first bytes.
struct Slot {
  alignas(16) std::byte bytes[kValueBytesMax];
  template <class T>
  T As() const {
    static_assert(sizeof(T) <= kValueBytesMax && std::is_trivially_copyable_v<T>);
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
};

// Makes the call: `target` is a library function, or the LanewayParts; slots[i] is parameter
// i.
using Invoker = uint32_t (*)(void* target, const Slot* slots);

enum class Outcome : uint8_t {
  kReplied,    // the reply is written; its status is Served::status
  kLater,      // the callee returned kReplyLater: it sends the reply itself
  kMalformed,  // no client of ours sends this: end the session. Nothing was called
};

struct Served {
  Outcome outcome = Outcome::kMalformed;
  uint32_t status = 0;
  bool called =
      false;  // false: refused at the door (a stale name, a foreign address, no such function)
  Refusal refusal = Refusal::kNone;  // why, when it was refused there
};

// Serves one request for `op`. A null target answers "not supported". `reply` receives the reply
// body; who sends it decides whether anyone wants it. REQUIRES: RowOf(op).remote.
Served ServeUntrusted(Op op, std::span<const std::byte> request, Invoker invoke, void* target,
                      Session& session, Writer* reply);

// The reply of a call that answered kReplyLater; values[i] points at the value that parameter i
// had.
void EncodeReply(Op op, CUresult status, Values values, Writer* reply);

}  // namespace ipc
