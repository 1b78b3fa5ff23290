// The loop of a session's thread: takes a message when the session may, has it served, and replies.
//
// Thread safety: the session's thread.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "daemon/worker/call_handlers/call_handlers.h"
#include "daemon/worker/client_bell.h"
#include "daemon/worker/iterations.h"
#include "daemon/worker/lane_executor.h"
#include "daemon/worker/parking.h"
#include "daemon/worker/session.h"
#include "daemon/worker/session_handover.h"
#include "daemon/worker/session_life.h"
#include "daemon/worker/thread_courtesy.h"
#include "daemon/worker/turn_wait.h"
#include "ipc/channel.h"
#include "ipc/session_file.h"

namespace worker {

class SessionLoop {
 public:
  // The rest of the session. All outlive this object.
  struct Surroundings {
    PoisonSink* poison;
    ipc::SessionFile* file;
    SessionLife* life;
    Parking* parking;
    SessionHandover* handover;
    CallHandlers* handlers;
    Iterations* iterations;
    LaneExecutor* turn;
    ClientBell* bell;
    ThreadCourtesy* courtesy;
  };
  // `wait` outlives this object. `channel` may be empty when another worker had the session: its
  // client puts the rings of the session's file in order first.
  SessionLoop(const Surroundings& around, TurnWait* wait, ipc::Channel channel);
  SessionLoop(const SessionLoop&) = delete;

  // True when a message waits to be taken.
  bool HasMessage() const { return channel_.receiver->Pending(); }
  // True when the client sent more along with the message that was served last.
  bool midway() const {
    return channel_.receiver != nullptr && channel_.receiver->midway() != nullptr;
  }

  enum class Outcome {
    kEnded,  // stopped, or lost
    kLeft,   // another worker is to go on, and nothing is in flight
  };
  // Waits for the client of a session that another worker had, then serves.
  Outcome Run();

 private:
  Outcome ServeAll();
  void Serve(std::span<const std::byte> message);
  // Launches of a chunk, of which the message is the first, as one graph. False: it is served
  // alone.
  bool TryReplay(const ipc::MessageHeader& header, bool was_quiet);
  // A call that changes the device was answered with an error that ends the process.
  void OnPoison(uint32_t status, bool was_quiet);
  void OnBadAddress(ipc::Op op);
  void NoteFailure(ipc::Op op, uint32_t status);
  void LoseForMalformed(uint16_t op_untrusted);
  void SendReply(const ipc::MessageHeader& request, size_t body_bytes);  // the body is in reply_

  const Surroundings around_;
  TurnWait& wait_;
  ipc::Channel channel_;
  const std::unique_ptr<std::byte[]> reply_;
  // The last launches came as a run. A run brings much work at once, for which the device may be
  // waiting: the thread takes the processor for it.
  bool replays_ = false;
};

}  // namespace worker
