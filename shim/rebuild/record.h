// Files calls in the log of living objects. One look into a table tells that most calls change
// nothing there.
//
// The roles of a row's parameters say which objects the call creates and ends. record.cc lists the
// rows whose calls change a setting that outlives the call. Thread safety: functions without state;
// Record() needs the client's send lock, as the log does.
#pragma once

#include <cstdint>
#include <span>

#include "ipc/codec_client.h"
#include "shim/rebuild/log.h"

namespace shim {

// Whether Record() would do anything for calls of this row.
bool IsRecorded(ipc::Op op);
// Whether the log must know where in the ring such a message is. Of fills and copies within the
// device the log keeps none.
bool NeedsPosition(ipc::Op op);

struct Sent {
  ipc::Op op{};
  ipc::Values values = nullptr;
  const ipc::Encoded* encoded = nullptr;
  std::span<const std::byte> message;  // header included
  uint64_t position = 0;               // the ring's, after the message
  uint64_t consumed = 0;               // how far the worker has come
  bool awaits_reply = false;
  uint64_t arena_base = 0;  // of the session
  uint64_t capture = 0;     // the piece that the worker captures it into; 0: none
};

// Notes a call that is about to be sent. The token is for RebuildLog::Drop, if the call fails.
RebuildLog::Token Record(const Sent& sent, RebuildLog* log);

}  // namespace shim
