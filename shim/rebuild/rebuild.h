// Tells a new worker of the session's living objects. The steps, and the process that takes each:
//
//   lanewayd  gives the session to a new worker, writes SessionPage::generation, rings.
//   client    under its send lock: copies the unread messages out of the ring, rewinds the ring to
//             where the lost worker stopped, acknowledges the generation.
//   worker    begins to take messages.
//   client    sends the log's entries at that position, a round trip each; then the messages that
//             were copied out, unchanged; goes on.
//
// While only the replay is in the ring (SessionPage::replaying) the new worker may be lost, too:
// the client then tells the next worker the same. Thread safety: one object, used under the
// client's send lock.
#pragma once

#include "ipc/calls/vendor.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "ipc/calls/laneway_calls.h"
#include "ipc/codec_client.h"
#include "ipc/ring.h"
#include "ipc/session_file.h"
#include "shim/pipeline.h"
#include "shim/rebuild/log.h"
#include "shim/replies.h"

namespace shim {

class Replay {
 public:
  // What it tells of and through which. All of it outlives this object.
  struct Ends {
    ipc::RingSender* ring = nullptr;
    ipc::SessionPage* page = nullptr;
    const RebuildLog* log = nullptr;
    Pipeline* pipeline = nullptr;
    Replies* replies = nullptr;
  };
  Replay(const Ends& ends, uint32_t generation) : ends_(ends), generation_(generation) {}

  // 600: yet another worker takes over. Other failures: error() is a sentence for the program.
  CUresult Run(uint64_t position);
  // Sends again what was copied out of the ring, with positions and all.
  CUresult Resend(std::span<const std::byte> unread);
  const std::string& error() const { return error_; }

 private:
  CUresult Send(std::span<const std::byte> message);
  // Sends a message with the request number of a round trip, and takes the reply's body.
  CUresult Exchange(std::span<const std::byte> message, std::vector<std::byte>* reply);
  CUresult Call(ipc::Op op, uint32_t context, ipc::Values values, uint32_t* status);
  CUresult Upload(const RebuildLog::Entry& entry, uint32_t context);
  CUresult Repeat(const RebuildLog::Entry& entry);
  bool IsWhereItWas(std::span<const std::byte> reply) const;
  CUresult Fail(std::string sentence);

  const Ends ends_;
  const uint32_t generation_;
  std::string error_;
};

}  // namespace shim
